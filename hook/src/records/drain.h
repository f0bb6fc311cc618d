/* The thread that brings records of probed launches from the device to result files. */
#ifndef TUI_PROBE_DRAIN_H
#define TUI_PROBE_DRAIN_H

#include <stdbool.h>

#include "cuda_abi.h"

/* Starts it. LAST_WORDS runs on it once, after drain_finish has had everything drained. */
bool drain_start(void (*write_final_lines)(void));

/* Asks for everything to be drained and waits until it is, at most this long. False if time ran out. */
bool drain_flush(unsigned milliseconds);

/* Has the records of CONTEXT copied off the device, and its times read. Waits for it, at most this long, and not for
 * work of other contexts. False if time ran out. */
bool drain_context(CUcontext context, unsigned milliseconds);

/* Frees what probes hold of memory: what is unused, and with USED what launches have written, once it is copied. Waits
 * at most this long. */
void drain_give_back(bool used, unsigned milliseconds);

/* The same as drain_flush for the last time. Takes no lock and allocates nothing. */
bool drain_finish(unsigned milliseconds);

/* The same, for the thread that ends the process, perhaps in a handler of a signal. What it was interrupted in is left:
 * a launch of its own is not waited for, nor are hook threads that wait for a lock that it may hold. */
bool drain_finish_here(unsigned milliseconds);

/* The same, without the final lines: the process continues for a moment. */
bool drain_flush_here(unsigned milliseconds);

/* True if such threads were waited for without success. */
bool drain_was_stuck(void);

/* Gives up what is still to be drained: all of it counts as dropped. Waits until the thread has written the final lines,
 * at most this long. False if it has not: then only the caller may, and only if drain_claim_final_lines allows. */
bool drain_give_up(unsigned milliseconds);

/* Takes the final lines over from the thread. False if it has begun to write them, or was not to. */
bool drain_claim_final_lines(void);

void drain_reset(void);

#endif
