#include "graph_times.h"

#include <stdlib.h>

struct graph_times *graph_times_make(uint32_t id)
{
    struct graph_times *times = calloc(1, sizeof *times);
    if (!times)
        return NULL;
    times->id = id;
    atomic_store(&times->users, 1);
    return times;
}

void graph_times_use(struct graph_times *times)
{
    atomic_fetch_add(&times->users, 1);
}

void graph_times_release(struct graph_times *times)
{
    if (times && atomic_fetch_sub(&times->users, 1) == 1)
        free(times);
}
