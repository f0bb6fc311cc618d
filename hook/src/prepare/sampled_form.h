/* The sampled form of a probe in a kernel, prepared when a launch first needs it. */
#ifndef TUI_PROBE_SAMPLED_FORM_H
#define TUI_PROBE_SAMPLED_FORM_H

#include "kernel.h"
#include "reasons.h"

/* Asks the engine for the sampled form of PROBE, and settles what it says, unless the trace has no room for it. Other
 * threads that want it wait. */
void sampled_form_prepare(struct kernel_probe *probe);

/* No launch has it from now on, for REASON: it turned out not to be launchable. */
void sampled_form_give_up(struct kernel_probe *probe, const struct reason *reason);

#endif
