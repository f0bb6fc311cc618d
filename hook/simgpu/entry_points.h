/* The addresses of the exported functions. */
#ifndef TUI_PROBE_SIMGPU_ENTRY_POINTS_H
#define TUI_PROBE_SIMGPU_ENTRY_POINTS_H

#include <stddef.h>

typedef void entry_function(void);

struct entry_point {
    const char *name;
    int version; /* of CUDA, in which this form of the function appeared */
    entry_function *address, *per_thread_address;
};

/* Of one name, the oldest form first. */
extern const struct entry_point entry_points[];
extern const size_t entry_point_count;

#endif
