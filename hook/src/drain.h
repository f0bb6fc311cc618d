/* The thread that brings records of probed launches from the device to result files. */
#ifndef TUI_PROBE_DRAIN_H
#define TUI_PROBE_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reason;

/* Starts it. LAST_WORDS runs on it once, after drain_finish has had everything drained. */
bool drain_start(void (*last_words)(void));

/* There is a sealed chunk. */
void drain_wake(void);

/* There are launches that will want draining once their chunk is full or idle. */
void drain_expect(void);

/* Asks for everything to be drained and waits until it is, at most this long. False if time ran out. */
bool drain_flush(unsigned milliseconds);

/* The same for the last time. May be called from _exit, hence from a signal handler: takes no lock,
 * allocates nothing. */
bool drain_finish(unsigned milliseconds);

/* Counts results that were not saved. */
void drain_dropped(size_t results, const struct reason *reason);
uint64_t drain_dropped_count(const struct reason **last_reason);

void drain_reset(void);

#endif
