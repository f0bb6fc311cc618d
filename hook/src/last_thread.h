/* A program whose first thread leaves with pthread_exit ends with the last of its other threads. Ours never end, so one of
 * them ends it then. Threads of the driver count as the program's: it ends when it would without us. */
#ifndef TUI_PROBE_LAST_THREAD_H
#define TUI_PROBE_LAST_THREAD_H

/* To be called where the process begins: of use in its first thread alone. */
void last_thread_watch(void);

#endif
