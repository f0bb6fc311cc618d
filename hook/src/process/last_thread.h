/* A program whose first thread leaves with pthread_exit ends with the last of its other threads. Ours never end, so one of
 * them ends it then. Threads of the driver count as the program's: it ends when it would without us. */
#ifndef TUI_PROBE_LAST_THREAD_H
#define TUI_PROBE_LAST_THREAD_H

/* To be called where the hook is loaded: in the first thread, the system says when that leaves. */
void last_thread_watch(void);

/* To be called before threads of ours run: a first thread of which the system says nothing is looked at now and then. */
void last_thread_begin(void);

#endif
