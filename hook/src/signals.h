/* Signals that would end the program before its records are on disk. */
#ifndef TUI_PROBE_SIGNALS_H
#define TUI_PROBE_SIGNALS_H

/* SIGTERM, SIGINT and SIGHUP, where the program leaves them to the system, first call END on a thread of
 * ours and then end the process as they would have. */
void signals_watch(void (*end)(void));

#endif
