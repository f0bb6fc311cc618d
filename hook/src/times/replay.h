/* Running a kernel several times as if it ran once: all memory that it can write is saved before and put
 * back between runs. Only where that is certain. */
#ifndef TUI_PROBE_REPLAY_H
#define TUI_PROBE_REPLAY_H

#include "kernel.h"
#include "launch.h"

struct snapshot;

/* The reason why this launch must not be run twice, or NULL. */
const struct reason *replay_obstacle(const struct launch *launch, const struct kernel_probe *probe,
                                     void *const *parameters);

/* Copies all of the program's memory in the current context, once it is at rest. NULL if it does not fit.
 * Until the snapshot is freed other threads wait to free what it would put back. */
struct snapshot *snapshot_take(const struct kernel_probe *probe, const struct variant *variant, CUstream stream);

/* Puts it all back, in the order of STREAM. */
CUresult snapshot_restore(const struct snapshot *snapshot, CUstream stream);

void snapshot_free(struct snapshot *snapshot);

#endif
