/* The thread that finds launches which do not end: those of which a warp stays on the device for longer than the run
 * allows. It writes a result of each, with the places of its warps, while the kernel runs. */
#ifndef TUI_PROBE_WATCHDOG_H
#define TUI_PROBE_WATCHDOG_H

#include <stddef.h>

struct kernel_probe;
struct launch;
struct reason;

/* Starts the thread, once, if launches are timed or the run has a watchdog. Not at a launch: by then a filter of the
 * program may end its process for a call such as clone. */
void watchdog_start(void);

/* LAUNCH is about to be made, with a kernel whose PROBE has resident maps. */
void watchdog_expects(const struct launch *launch, struct kernel_probe *probe);

/* LAUNCH was made, with watched code. Where the simulated GPU has ended it as a deadlock, its places are written now. */
void watchdog_returns(const struct launch *launch);

/* LAUNCH is about to be made unprobed, for REASON. Returns a place for unwatched_launch_ends. */
size_t watchdog_passes(const struct launch *launch, const struct reason *reason);

/* LAUNCH, which is timed, is about to be made in a run without a watchdog: nothing else shows that it does not end. As
 * watchdog_passes. */
size_t watchdog_times(const struct launch *launch);

/* The process ends: reports the launches that are running, and waits for that, not for long. Safe in a signal handler. */
void watchdog_end(void);

/* Forgets what it has seen, in a forked child. */
void watchdog_reset(void);

#endif
