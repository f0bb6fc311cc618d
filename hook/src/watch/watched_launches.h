/* The last launches of kernels with resident maps, by their numbers: what a result of one that does not end says of it.
 * And the launches without, while the driver makes them: the simulated one returns at the kernel's end. */
#ifndef TUI_PROBE_WATCHED_LAUNCHES_H
#define TUI_PROBE_WATCHED_LAUNCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel;
struct kernel_probe;
struct launch;
struct reason;

/* A launch as it was made. */
struct watched_launch {
    uint64_t number, time;
    struct kernel_probe *probe; /* that has the resident maps */
    struct shape_group *group;
    uint64_t stream;
    uint32_t grid[3], block[3], shared;
};

/* LAUNCH is about to be made, with a kernel whose PROBE has resident maps. */
void watched_launch_begins(const struct launch *launch, struct kernel_probe *probe);

/* Finds a launch by its number. False if too many came after it. */
bool watched_launch_find(uint64_t number, struct watched_launch *launch);

/* The caller is to log it: true for the first that asks, of the launching thread and the watchdog. */
bool watched_launch_logs(uint64_t number);

/* A launch without the watchdog's code, whose driver call has not returned. */
struct unwatched_launch {
    uint64_t number, since;
    const struct kernel *kernel;
    const struct reason *reason; /* why it has none; NULL: the run has no watchdog */
};

enum { UNWATCHED_LAUNCHES = 64 }; /* threads that launch at a time; those beyond are not noted */

/* LAUNCH is about to be made, unprobed for REASON. Returns its place; UNWATCHED_LAUNCHES: there is none left. */
size_t unwatched_launch_begins(const struct launch *launch, const struct reason *reason);

/* The call of the launch at PLACE has returned. */
void unwatched_launch_ends(size_t place);

/* Reads the launch at PLACE. False if there is none. */
bool unwatched_launch_at(size_t place, struct unwatched_launch *launch);

void watched_launches_reset(void);

#endif
