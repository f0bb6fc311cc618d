/* The thread that brings records of probed launches from the device to result files. */
#ifndef TUI_PROBE_DRAIN_H
#define TUI_PROBE_DRAIN_H

#include <stdbool.h>

/* Starts it. LAST_WORDS runs on it once, after drain_finish has had everything drained. */
bool drain_start(void (*last_words)(void));

/* Asks for everything to be drained and waits until it is, at most this long. False if time ran out. */
bool drain_flush(unsigned milliseconds);

/* The same for the last time. Takes no lock and allocates nothing. */
bool drain_finish(unsigned milliseconds);

/* The same, for the thread that ends the process, perhaps in a handler of a signal. What it was interrupted in is left:
 * a launch of its own is not waited for, nor are threads of ours that wait for a lock that it may hold. */
bool drain_finish_here(unsigned milliseconds);

/* Whether such threads were waited for in vain. */
bool drain_was_stuck(void);

/* Gives up what is still to be drained: all of it counts as dropped. Waits until the thread has said its last words, at
 * most this long. False if it has not: then nobody but the caller shall say them, and only if DRAIN_SILENCE allows. */
bool drain_give_up(unsigned milliseconds);

/* The thread shall say no last words. False if it has begun to, or was not to say any. */
bool drain_silence(void);

void drain_reset(void);

#endif
