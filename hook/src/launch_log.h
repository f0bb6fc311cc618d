/* Launches on their way to event.log: a launching thread only copies a record into a ring, and a
 * thread of ours turns records into lines a few milliseconds later. */
#ifndef TUI_PROBE_LAUNCH_LOG_H
#define TUI_PROBE_LAUNCH_LOG_H

#include <stdbool.h>
#include <stdint.h>

struct capacities;
struct kernel;
struct probing;
struct launch;
struct reason;

/* A launch as the lines of the log tell of it. */
struct launch_record {
    uint64_t number; /* launches of the process before this one */
    uint64_t time;   /* nanoseconds since 1970 */
    const struct kernel *kernel;
    const struct reason *reason; /* why it was passed through; NULL for a probed launch */
    uint32_t grid[3], block[3], shared;
    int32_t result;
    const struct probing *probing; /* of a probed launch, as all that follows */
    uint64_t stream;           /* which it was launched in */
    const struct capacities *capacities; /* of its dynamic maps */
    const uint8_t *parameters; /* values one after another; NULL: not known */
};

/* The original of KERNEL ran for REASON. */
void launch_log_passed(const struct launch *launch, const struct kernel *kernel, const struct reason *reason,
                       int32_t result);

/* The kernel of PROBING ran probed; VALUES are pointers to its parameters. */
void launch_log_probed(const struct launch *launch, const struct probing *probing, void *const *values, int32_t result);

/* Formats all records that wait; the lock of the log's file is held. True if there were any. */
bool launch_log_drain(void);

/* The same with the lock not held yet, and brings the lines to the file. */
bool launch_log_flush(void);

/* Starts the thread that empties the ring. */
bool launch_log_start(void);

/* Forgets everything, in a forked child. */
void launch_log_reset(void);

#endif
