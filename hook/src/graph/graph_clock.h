/* Times of single kernels of a graph: events around each in its clone, which every replay of the probed copy records.
 *
 * Of kernels in child graphs, and of graphs with programmatic edges, which an event would end, nothing is known. */
#ifndef TUI_PROBE_GRAPH_CLOCK_H
#define TUI_PROBE_GRAPH_CLOCK_H

#include "executable.h"
#include "graph_probed.h"

/* Puts the events into the clone; *CLOCK is what the executable is to have, NULL where none can be. False if the driver
 * refuses: the clone is of no use then. */
bool graph_clock_make(const struct executable *executable, struct graph_clock **clock);

/* The probed copy and the clone are gone, and the events go. */
void graph_clock_drop(struct executable *executable);

/* The same, where its events are gone with their context. */
void graph_clock_forget(struct executable *executable);

/* True if the next replay of the probed copy should have no probe in it, so that times are those of the kernels
 * themselves. */
bool graph_clock_wants_originals(const struct executable *executable);

/* True if times of such a replay are still to be read: the next replay of the probed copy would write over them. */
bool graph_clock_is_unread(const struct executable *executable);

/* The probed copy was launched for REPLAY, with its nodes that are taken PROBED; behind it is the executable's
 * event. */
void graph_clock_replayed(struct executable *executable, const struct replay *replay, bool probed);

/* For the draining thread, with the lock of the probed copies: logs the times of a replay that is over. */
void graph_clock_read(struct executable *executable);

#endif
