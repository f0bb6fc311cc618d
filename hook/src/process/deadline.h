/* The deadline of the program's end, which waits for what is left to write: as long as is allowed, or less than a
 * second once someone asked the program to end. */
#ifndef TUI_PROBE_DEADLINE_H
#define TUI_PROBE_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

/* A program that is asked to end may take a second for its results, all in all: the rest is for the driver's own end. */
enum { HURRIED_MILLISECONDS = 800 };

/* The program was asked to end. Safe in a signal handler. */
void deadline_shorten(void);

/* True if a caller that has waited since BEGAN (of clock_now), and may do so for MILLISECONDS, must stop: a wait lasts
 * HURRIED_MILLISECONDS at most from the moment on in which the program was asked to end. Looks from time to time
 * whether the launcher was: programs that handle the signal themselves end without our seeing it. */
bool deadline_passed(uint64_t began, unsigned milliseconds);

void deadline_reset(void);

#endif
