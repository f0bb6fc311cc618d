/* Lines of event.log about graphs. */
#ifndef TUI_PROBE_GRAPH_LOG_H
#define TUI_PROBE_GRAPH_LOG_H

#include "executable.h"

/* An executable and its nodes: when it is made, and when they have become others. */
void graph_log_nodes(const struct executable *executable);

/* Logs the replays since the last line: now and then, or all at a point where the log must have them. */
void graph_log_replays(struct executable *executable);
void graph_log_all_replays(struct executable *executable);

/* A probed replay, whose nodes take the launch numbers from FIRST on; N of them are listed as probed launches. */
void graph_log_probed(struct executable *executable, uint64_t replay, uint64_t first, uint64_t time,
                      struct graph_node *const *probed, size_t n);

/* A replay that was due has passed for REASON, if that is not what the last one did for. */
void graph_log_passed(struct executable *executable, const struct reason *reason);

void graph_log_destroyed(struct executable *executable);

/* At the end of the trace. */
void graph_log_end(void);

#endif
