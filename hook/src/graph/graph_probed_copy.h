/* The probed copy of an executable. */
#ifndef TUI_PROBE_GRAPH_PROBED_COPY_H
#define TUI_PROBE_GRAPH_PROBED_COPY_H

#include "executable.h"

/* Clones GRAPH for a probed copy, unless something refuses one; then the executable says what. */
void probed_copy_clone(struct executable *executable, CUgraph graph);

/* Gives up the probed copy and the clone for REASON; NULL: the executable goes. */
void probed_copy_drop(struct executable *executable, const struct reason *reason);

/* Makes the probed copy unless it is there; the lock is held. Where launches need not wait a hook thread makes it,
 * and it is there for a later replay. Returns why it is not there, or NULL. */
const struct reason *probed_copy_ready(struct executable *executable);

void probed_copies_lock(void);
void probed_copies_unlock(void);

/* Takes the lock unless that would mean waiting for a probed copy that is being made. */
bool probed_copies_try_lock(void);

/* Takes the lock unless that would mean waiting. */
bool probed_copies_lock_if_free(void);

/* The program got no memory: destroys all probed copies. False if there were none. */
bool probed_copies_give_back(void);

/* CONTEXT may be about to go: no probed copy and no event of tui-probe is left in it. CERTAIN: only if the call fails it
 * stays. */
void probed_copies_leave(CUcontext context, bool certain);

/* It is gone: nothing in it has a probed copy any more. */
void probed_copies_forget(CUcontext context);

/* For the draining thread: logs times of kernels in replays that are over. */
void probed_copies_read_times(void);

void probed_copies_reset(void);

#endif
