/* Helper threads inside the profiled program. */
#ifndef TUI_PROBE_THREADS_H
#define TUI_PROBE_THREADS_H

#include <stdbool.h>

/* Starts a detached thread with all signals blocked: the program's handlers must not run on it. */
bool thread_start(void *(*body)(void *));

#endif
