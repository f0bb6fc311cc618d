/* The lines of event.log that describe one launch. */
#ifndef TUI_PROBE_LAUNCH_LINES_H
#define TUI_PROBE_LAUNCH_LINES_H

#include "launch_log.h"

/* Appends them to the log's file, whose lock is held. */
void launch_lines(const struct launch_record *record);

/* Forgets the limit that was reported as reached, in a forked child. */
void launch_lines_reset(void);

#endif
