/* Launches that run and whose warps have no places: those without the watchdog's code, and all of a run without a
 * watchdog. The events around timed launches show them, or a driver call that does not return. */
#ifndef TUI_PROBE_RUNNING_LAUNCHES_H
#define TUI_PROBE_RUNNING_LAUNCHES_H

#include <stdbool.h>
#include <stdint.h>

/* The end of the run: the signals that have asked it to, the time of the first round after the last of them (0: none
 * came), and whether the process ends. */
struct run_end {
    uint64_t interrupts, interrupted_at;
    bool ending;
};

/* Reports launches that run for longer than the limit, or that still run when the run ends. */
void running_launches_look(const struct run_end *end, uint64_t now);

void running_launches_reset(void);

#endif
