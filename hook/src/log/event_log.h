/* event.log of a trace: what the hook did, one line per event.
 *
 * Launches are frequent and go through a ring (launch_log.h); everything else is written immediately,
 * after the launches that came before it. Before the first launch there is no file: lines are kept
 * in memory, and a process that never launches leaves nothing behind. */
#ifndef TUI_PROBE_EVENT_LOG_H
#define TUI_PROBE_EVENT_LOG_H

#include <stdbool.h>

#include "control.h"

/* Adds whole lines ("…\n"). Does nothing in a process that is not traced. */
void event_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for calls that a program may make any number of times: they stop, counted, where the log's budget does. */
#define event_log_often(...) (control_log_is_open() ? event_log(__VA_ARGS__) : event_log_drop("" __VA_ARGS__))

/* The same for lines that sum up others: they continue for a while. */
#define event_log_summary(...) (control_log_has_reserve() ? event_log(__VA_ARGS__) : event_log_drop("" __VA_ARGS__))

/* Counts a line by its tag. */
void event_log_drop(const char *format, ...);

/* Says how many lines of each tag were left out. */
void event_log_dropped(void);

/* Forgets these counts, in a forked child. */
void event_log_reset(void);

/* Adds the launches so far, so that what is counted along with their lines is known. */
void event_log_launches(void);

#endif
