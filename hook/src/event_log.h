/* event.log of a trace: what the hook did, one line per event.
 *
 * Launches are frequent and go through a ring (launch_log.h); everything else is written at once,
 * after the launches that came before it. Before the first launch there is no file: lines are kept
 * in memory, and a process that never launches leaves nothing behind. */
#ifndef TUI_PROBE_EVENT_LOG_H
#define TUI_PROBE_EVENT_LOG_H

#include <stdbool.h>

/* Adds whole lines ("…\n"). Does nothing in a process that is not traced. */
void event_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for calls that a program may make any number of times: they stop, counted, where the log's budget does. */
#define event_log_often(...) (event_log_has_room() ? event_log(__VA_ARGS__) : (void)0)

bool event_log_has_room(void);

/* Adds the launches so far, so that what is counted along with their lines is known. */
void event_log_launches(void);

#endif
