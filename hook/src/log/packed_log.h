/* Launches that ran unprobed, in a few bytes each: one line of event.log for many, in which each has the number of
 * its group. All of this is done with the lock of the log's file held. */
#ifndef TUI_PROBE_PACKED_LOG_H
#define TUI_PROBE_PACKED_LOG_H

#include <stdbool.h>
#include <stdint.h>

struct shape_group;
struct reason;

/* Adds launch NUMBER of GROUP, which ran unprobed for REASON at TIME (ns since 1970), to the line that is being
 * filled. False: there are too many reasons to number this one. */
bool packed_log_add(struct shape_group *group, const struct reason *reason, uint64_t number, uint64_t time);

/* Writes the line that says what GROUP is, unless it is there already. */
void packed_log_group(struct shape_group *group);

/* Says how many launches of GROUP have been lost since this was said last, if any have. */
void packed_log_lost(struct shape_group *group);

/* Ends the line that is being filled, if there is one; the other: if it has been open for long. */
void packed_log_end(void);
void packed_log_end_old(void);

/* Forgets everything, in a forked child. */
void packed_log_reset(void);

#endif
