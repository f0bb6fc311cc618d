/* Waking the draining thread, from wherever there is something for it. */
#ifndef TUI_PROBE_DRAIN_WAKE_H
#define TUI_PROBE_DRAIN_WAKE_H

#include <stdbool.h>

/* There is a sealed chunk, or something else to do immediately. */
void drain_wake(void);

/* There are launches that will want draining once their chunk is full or idle. */
void drain_expect(void);

/* For the thread itself. Once it is to run, drain_wake wakes it; later waits are until then. */
void drain_wake_start(void);
void drain_wake_stop(void);
bool drain_is_running(void);

/* Nothing is pending: drain_expect wakes too, until the next drain_wake. */
void drain_rest(void);

/* Sleeps so long, or until woken; 0: until woken. */
void drain_sleep(unsigned microseconds);

#endif
