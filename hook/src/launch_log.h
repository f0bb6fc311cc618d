/* Launches on their way to event.log: a launching thread only copies a record into a ring, and a
 * thread of ours turns records into lines a few milliseconds later. */
#ifndef TUI_PROBE_LAUNCH_LOG_H
#define TUI_PROBE_LAUNCH_LOG_H

#include <stdbool.h>
#include <stdint.h>

struct kernel;

enum { LAUNCH_PARAMETERS_INLINE = 128 };

struct launch_record {
    uint64_t time;   /* nanoseconds since 1970 */
    uint64_t number; /* launches of the process before this one */
    const struct kernel *kernel;
    const char *reason; /* why it was passed through; NULL for a probed launch */
    uint64_t stream;
    uint32_t grid[3], block[3], shared;
    int32_t result;
    uint32_t parameter_bytes; /* values one after another; sizes are the kernel's */
    uint8_t *parameters;      /* on the heap, if they do not fit inline; freed by the log */
    uint8_t parameters_inline[LAUNCH_PARAMETERS_INLINE];
};

void launch_log_push(const struct launch_record *record);

/* Formats all records that wait; the event log's lock is held. True if there were any. */
bool launch_log_drain(void);

/* Starts the thread that empties the ring. */
bool launch_log_start(void);

/* Forgets everything, in a forked child. */
void launch_log_reset(void);

#endif
