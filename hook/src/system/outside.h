/* Threads that wait for the disk or the GPU: such a call may take long of itself. */
#ifndef TUI_PROBE_OUTSIDE_H
#define TUI_PROBE_OUTSIDE_H

#include <stdbool.h>

/* Around such calls, by any thread. */
void outside_begin(void);
void outside_end(void);

/* True if any thread is between the two. */
bool outside_any(void);

void outside_reset(void);

#endif
