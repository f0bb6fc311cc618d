/* Launches that are saved with all that they reach, to be launched alone (run --keep-launch, tui-probe extract).
 *
 * A directory kept/KERNEL@LAUNCH of the trace gets the image, the parameters and the memory before and after the
 * launch; `tui-probe help reproducer` has its files. The original kernel runs. */
#ifndef TUI_PROBE_KEPT_LAUNCH_H
#define TUI_PROBE_KEPT_LAUNCH_H

#include "launch.h"

/* True if LAUNCH is the first of its kernel at or behind the number that the user named. True once for each of them. */
bool kept_launch_take(const struct launch *launch, const struct kernel *kernel);

/* Saves LAUNCH and launches the original, whose RESULT is set. False if its memory could not be saved: then it was not
 * launched. Logs the reason, or what was saved. */
bool kept_launch(const struct launch *launch, struct kernel *kernel, CUresult *result);

void kept_launch_reset(void);

#endif
