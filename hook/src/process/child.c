#include "child.h"

#include <stddef.h>

#include "ahead.h"
#include "allocations.h"
#include "background.h"
#include "benchmark.h"
#include "buffers.h"
#include "capacities.h"
#include "clock.h"
#include "context_holds.h"
#include "control.h"
#include "deadline.h"
#include "drain.h"
#include "ending.h"
#include "engine_client.h"
#include "errand.h"
#include "event_log.h"
#include "executable.h"
#include "graph_captured.h"
#include "graph_probed_copy.h"
#include "hook_state.h"
#include "host_memory.h"
#include "kept_launch.h"
#include "kernels.h"
#include "launch_counts.h"
#include "launch_log.h"
#include "legacy_launch.h"
#include "log_file.h"
#include "memusage.h"
#include "nvtx.h"
#include "own_file.h"
#include "packed_log.h"
#include "prepare.h"
#include "reasons.h"
#include "registry.h"
#include "replayed_probes.h"
#include "reservations.h"
#include "schedule.h"
#include "settings.h"
#include "streams.h"
#include "threads.h"
#include "timing.h"
#include "trace_dir.h"
#include "unloading.h"
#include "unseen_drivers.h"
#include "variants.h"
#include "watchdog.h"
#include "watched_launches.h"

void child_begin(void)
{
    ending_reset();
    settings.stamp = NULL; /* the launcher has started the parent, not this process */
    log_file_reset();
    reasons_reset();
    event_log_reset();
    launch_log_reset();
    packed_log_reset();
    schedule_reset();
    registry_reset();
    kernels_reset();
    unloading_reset();
    variants_reset();
    prepare_reset();
    ahead_reset();
    budget_reset();
    control_reset();
    host_memory_reset();
    background_reset();
    buffers_reset();
    context_holds_reset();
    allocations_reset();
    benchmark_reset();
    replayed_probes_reset();
    kept_launch_reset();
    memusage_reset();
    capacities_reset();
    drain_reset();
    legacy_launch_reset();
    streams_reset();
    timing_reset();
    executables_reset();
    probed_copies_reset();
    graph_captured_reset();
    engine_reset();
    errand_reset();
    trace_dir_reset();
    own_file_reset();
    threads_reset();
    launch_counts_reset();
    nvtx_reset();
    deadline_reset();
    unseen_drivers_reset();
    watched_launches_reset();
    watchdog_reset();
    clock_start();
    hook_state_reset(); /* the last: from here on launches are traced */
}
