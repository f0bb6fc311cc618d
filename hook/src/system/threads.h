/* Helper threads inside the profiled program. */
#ifndef TUI_PROBE_THREADS_H
#define TUI_PROBE_THREADS_H

#include <stdbool.h>

/* Starts a detached thread with all signals blocked: the program's handlers must not run on it. */
bool thread_start(void *(*body)(void *));

/* True if the calling thread was started by thread_start: it has a large stack, and no caller of the program's. */
bool thread_is_ours(void);

/* The state of a thread of the process, as the system writes it: S asleep, R running, Z ended; 0 if there is none.
 * Takes no lock. */
char thread_state(int id);

/* A file that tells the state of the calling thread, less than 0 if there is none; and the state that it tells. */
int thread_state_open(void);
char thread_state_read(int file);

/* Calls VISIT for each thread of the process that is not ours; false if they cannot be listed. Takes no lock and
 * allocates nothing. */
bool threads_each_other(void (*visit)(int id, void *argument), void *argument);

/* True if there is no thread but ours, apart from the process's first. */
bool threads_are_alone(void);

void threads_reset(void);

#endif
