/* Launches on their way to event.log: a launching thread only copies a record into a ring, and a
 * hook thread turns records into lines a few milliseconds later. */
#ifndef TUI_PROBE_LAUNCH_LOG_H
#define TUI_PROBE_LAUNCH_LOG_H

#include <stdbool.h>
#include <stdint.h>

struct capacities;
struct kernel;
struct kernel_probe;
struct launch;
struct reason;

/* A launch as the lines of the log report it. */
struct launch_record {
    uint64_t number; /* launches of the process before this one */
    uint64_t time;   /* nanoseconds since 1970 */
    struct kernel *kernel;
    const struct reason *reason; /* why it was run unprobed; NULL for a probed launch */
    uint32_t grid[3], block[3], shared;
    int32_t result;
    const struct kernel_probe *probe; /* of a probed launch or a sized one, as all that follows; else NULL */
    uint64_t stream;           /* which it was launched in */
    const struct capacities *capacities; /* of its dynamic maps */
    const uint8_t *parameters; /* values one after another; NULL: not known */
};

/* The original ran for REASON. Where the schedule decides what is probed, this never waits. */
void launch_log_passed(const struct launch *launch, const struct reason *reason, int32_t result);

/* The kernel of PROBE ran probed; VALUES are pointers to its parameters. */
void launch_log_probed(const struct launch *launch, const struct kernel_probe *probe, void *const *values,
                       int32_t result);

/* The original ran instead, for REASON: the records of a probed launch would take what the launch's capacities
 * say; REASON must be one that has_size knows. */
void launch_log_sized(const struct launch *launch, const struct kernel_probe *probe, const struct reason *reason,
                      int32_t result);

/* True if a probed launch would have to wait for room. */
bool launch_log_is_full(void);

/* Formats all records that wait, whole lines; the lock of the log's file is held. */
void launch_log_drain(void);

/* Starts the thread that empties the ring. */
bool launch_log_start(void);

/* Forgets everything, in a forked child. */
void launch_log_reset(void);

#endif
