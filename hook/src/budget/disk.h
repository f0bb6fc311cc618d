/* The disk of the trace: results stop while too little of it is free, so that they never fill it up. */
#ifndef TUI_PROBE_DISK_H
#define TUI_PROBE_DISK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct reason;

/* The maximum age of a look at the disk. */
enum { DISK_MILLISECONDS = 100 };

/* The reason why results are not saved meanwhile. */
const struct reason *disk_reason(void);

/* True if a file of SIZE bytes leaves enough of the disk free. If not, GATE is shut: it is set to the reason,
 * unless it holds one already. */
bool disk_admits(uint64_t size, _Atomic(const struct reason *) *gate);

/* The same for a file that no gate depends on. */
bool disk_has_room(uint64_t size);

/* True if GATE is still shut for want of room; opens it where there is room again. While it is shut, to be called
 * every DISK_MILLISECONDS by a thread that the program does not wait for. */
bool disk_still_short(_Atomic(const struct reason *) *gate);

#endif
