/* One replay of an executable, by itself or by its probed copy. */
#ifndef TUI_PROBE_GRAPH_REPLAY_H
#define TUI_PROBE_GRAPH_REPLAY_H

#include "executable.h"

/* LAUNCH is the form of the driver's function that the program called, with the STREAM that it passed. */
CUresult graph_replay(struct executable *executable, CUresult (*launch)(CUgraphExec, CUstream), CUstream passed,
                      CUstream stream);

/* Before a replay of the executable itself in STREAM: it comes behind a replay of the probed copy. */
void graph_wait_for_probed_copy(const struct executable *executable, CUstream stream);

/* True if the next replay is to be probed, if it can be. */
bool graph_replay_is_near(struct executable *executable);

#endif
