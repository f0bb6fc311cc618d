#include "launch_counts.h"

struct launch_counts launch_counts;

uint64_t launch_count(void)
{
    return atomic_load(&launch_counts.all);
}

uint64_t launch_probed_count(void)
{
    return atomic_load(&launch_counts.probed);
}

uint64_t launch_recorded_count(void)
{
    return launch_probed_count() - atomic_load(&launch_counts.watched);
}

uint64_t launch_run_count(void)
{
    return launch_count() - atomic_load(&launch_counts.captured);
}

void launch_counts_reset(void)
{
    atomic_store(&launch_counts.probed, 0);
    atomic_store(&launch_counts.captured, 0);
    atomic_store(&launch_counts.watched, 0);
    atomic_store(&launch_counts.all, 0);
}
