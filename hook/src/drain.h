/* The thread that brings records of probed launches from the device to result files. */
#ifndef TUI_PROBE_DRAIN_H
#define TUI_PROBE_DRAIN_H

#include <stdbool.h>

/* Starts it. LAST_WORDS runs on it once, after drain_finish has had everything drained. */
bool drain_start(void (*last_words)(void));

/* Asks for everything to be drained and waits until it is, at most this long. False if time ran out. */
bool drain_flush(unsigned milliseconds);

/* The same for the last time. May be called from _exit, hence from a signal handler: takes no lock,
 * allocates nothing. */
bool drain_finish(unsigned milliseconds);

void drain_reset(void);

#endif
