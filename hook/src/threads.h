/* Helper threads inside the profiled program. */
#ifndef TUI_PROBE_THREADS_H
#define TUI_PROBE_THREADS_H

#include <stdbool.h>

/* Starts a detached thread with all signals blocked: the program's handlers must not run on it. */
bool thread_start(void *(*body)(void *));

/* The state of a thread of the process, as the system writes it: S asleep, R running, Z ended; 0 if there is none. Takes
 * no lock. */
char thread_state(int id);

/* Whether there is no thread but ours, apart from the process's first. */
bool threads_are_alone(void);

void threads_reset(void);

#endif
