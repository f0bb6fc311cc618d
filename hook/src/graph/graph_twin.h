/* The probed twin of an executable. */
#ifndef TUI_PROBE_GRAPH_TWIN_H
#define TUI_PROBE_GRAPH_TWIN_H

#include "executable.h"

/* Clones GRAPH for a twin, unless something refuses one; then the executable says what. */
void twin_clone(struct executable *executable, CUgraph graph);

/* Gives up the twin and the clone for REASON; NULL: the executable goes. */
void twin_drop(struct executable *executable, const struct reason *reason);

/* Makes the twin unless it is there; the lock is held. Where launches need not wait a thread of ours makes it, and it is
 * there for a later replay. Returns why it is not there, or NULL. */
const struct reason *twin_ready(struct executable *executable);

void twins_lock(void);
void twins_unlock(void);

/* Takes the lock unless that would mean waiting for a twin that is being made. */
bool twins_try_lock(void);

/* Takes the lock unless that would mean waiting. */
bool twins_lock_if_free(void);

/* The program got no memory: destroys all twins. False if there were none. */
bool twins_give_back(void);

/* CONTEXT may be about to go: no twin and no event of ours is left in it. CERTAIN: only if the call fails it stays. */
void twins_leave(CUcontext context, bool certain);

/* It is gone: nothing in it has a twin any more. */
void twins_forget(CUcontext context);

/* For the draining thread: logs times of kernels in replays that are over. */
void twins_read_times(void);

void twins_reset(void);

#endif
