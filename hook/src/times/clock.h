/* One clock for logs and file names: nanoseconds since 1970 that never run backwards. */
#ifndef TUI_PROBE_CLOCK_H
#define TUI_PROBE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Sets the zero of the process; returns nothing, safe to call again in a forked child. */
void clock_start(void);

/* Now, and the zero, in nanoseconds since 1970. */
uint64_t clock_now(void);
uint64_t clock_zero(void);

/* Nanoseconds since some moment, some milliseconds late, for a quarter of the time that the other clock takes to
 * read. */
uint64_t clock_coarse(void);

/* A deadline for waits against CLOCK_MONOTONIC, MILLISECONDS from now. */
struct timespec clock_deadline(unsigned milliseconds);

#endif
