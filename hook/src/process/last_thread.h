/* A program whose first thread leaves with pthread_exit ends with the last of its other threads. Ours never end, so one
 * of them ends it then. Threads of the driver count as the program's: it ends when it would without us. */
#ifndef TUI_PROBE_LAST_THREAD_H
#define TUI_PROBE_LAST_THREAD_H

#include <stdbool.h>

/* To be called where the hook is loaded: in the first thread, the system says when that leaves. END ends the process
 * immediately. */
void last_thread_watch(void (*end)(int status));

/* The calling thread leaves by the system call, which the C library does not see. Where it is the first one, the
 * process ends with STATUS as its last thread does. BEGUN: hook threads run. */
void last_thread_leaves(int status, bool begun);

/* To be called before hook threads run: a first thread for which the system says nothing is looked at now and
 * then. */
void last_thread_begin(void);

#endif
