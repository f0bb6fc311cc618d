/* The choice of timed launches: of each group the first ones, then ever fewer, and one without the probe right after
 * each with it. Launches in a capture are not, nor those that overlap with their neighbours by programmatic dependent
 * launch: an event between the two would end that. */
#ifndef TUI_PROBE_TIMING_H
#define TUI_PROBE_TIMING_H

#include <stdbool.h>

#include "kernel.h"
#include "launch.h"
#include "timers.h"

/* Counts a launch that is PROBED if nothing is against that, and says whether it is timed: the timer is then the
 * launch's until timer_give, which takes what is put into TIMED. */
struct timer *timing_begin(const struct launch *launch, bool probed, struct timed_launch *timed);

/* The same for replay NUMBER of an executable. */
struct timer *timing_begin_replay(struct graph_times *times, bool probed, uint64_t number, struct timed_launch *timed);

void timing_reset(void);

#endif
