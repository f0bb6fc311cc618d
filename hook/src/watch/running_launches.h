/* Launches that run and whose warps have no places: those without the watchdog's code, and all of a run without a
 * watchdog. The events around timed launches show them, or a driver call that does not return. */
#ifndef TUI_PROBE_RUNNING_LAUNCHES_H
#define TUI_PROBE_RUNNING_LAUNCHES_H

#include <stdbool.h>
#include <stdint.h>

enum { INTERRUPTS_KEPT = 8 };

/* The end of the run: the signals that have asked for it, the times of the first rounds after the last of them, newest
 * first (0: none came), and whether the process ends. */
struct run_end {
    uint64_t interrupts, times[INTERRUPTS_KEPT];
    bool ending;
};

/* Sets the number of signals that came until TIME. */
void run_end_interrupt(struct run_end *end, uint64_t interrupts, uint64_t time);

/* Returns the number of signals after SINCE, of those that are kept. */
uint64_t run_end_requests(const struct run_end *end, uint64_t since);

/* Reports launches that run for longer than the limit, or that still run when the run ends. */
void running_launches_look(const struct run_end *end, uint64_t now);

void running_launches_reset(void);

#endif
