/* event.log of a trace: what the hook did, a line an event.
 *
 * Launches are frequent and go through a ring (launch_log.h); everything else is written at once,
 * after the launches that came before it. Before the first launch there is no file: lines are kept
 * in memory, and a process that never launches leaves nothing behind. */
#ifndef TUI_PROBE_EVENT_LOG_H
#define TUI_PROBE_EVENT_LOG_H

#include <stdbool.h>
#include <stdint.h>

/* Adds whole lines ("…\n"). Does nothing in a process that is not traced. */
void event_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Starts the file with HEADER lines, then the lines kept so far. */
bool event_log_open(const char *path, const char *header);

/* Writes out the launches that wait in the ring; true if there were any. */
bool event_log_flush(void);

/* Forgets everything, in a forked child. */
void event_log_reset(void);

/* For formatters that run inside event_log_flush. */
void event_log_append(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
