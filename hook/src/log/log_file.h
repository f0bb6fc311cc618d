/* The text of event.log: lines gathered in memory and written in large pieces. Those who add lines hold its lock.
 * Before the first launch there is no file: lines are kept in memory. */
#ifndef TUI_PROBE_LOG_FILE_H
#define TUI_PROBE_LOG_FILE_H

#include <stdarg.h>
#include <stdbool.h>

void log_file_lock(void);
void log_file_unlock(void);

/* The process ends, and the lock may never be released: LOG_FILE_LOCK_IN_TIME waits a moment only. */
void log_file_hurry(void);
bool log_file_lock_in_time(void);

/* Writes one line without the lock, past those that wait to be written. */
void log_file_write_past(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/* Adds text; the lock is held. Goes to the file by itself only where much has gathered, and a line is whole. */
void log_file_append(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_file_append_list(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/* Brings what was added to the file, if there is one; the lock is held. */
void log_file_write(void);

/* Starts the file with HEADER lines, then the lines kept so far. */
bool log_file_open(const char *path, const char *header);

/* Forgets everything, in a forked child. */
void log_file_reset(void);

#endif
