#include "graph_replay.h"

#include "background.h"
#include "clock.h"
#include "control.h"
#include "gate.h"
#include "graph_log.h"
#include "graph_probed.h"
#include "graph_probed_copy.h"
#include "launch_counts.h"
#include "nvtx.h"
#include "prepare.h"
#include "real.h"
#include "registry.h"
#include "settings.h"
#include "timing.h"

/* Divisors of the backoff, as of launches (schedule.c). More extras than there: a replay has many kernels, and each may
 * lack a result. */
enum { LIGHT_DIVISOR = 8, HEAVY_DIVISOR = 1, MOST_EXTRAS = 16 };

/* The place of replay N in the schedule, which begins anew when recording is switched on. */
static uint64_t place_of(struct executable *executable, uint64_t n)
{
    const uint64_t now = control_generation();
    if (executable->generation != now) {
        executable->generation = now;
        executable->begun = n;
        executable->extras = 0;
        atomic_store_explicit(&executable->probes.next, 0, memory_order_relaxed);
    }
    return n - executable->begun;
}

bool graph_replay_is_near(struct executable *executable)
{
    const uint64_t n = atomic_load(&executable->replays);
    return !settings.scheduled ||
           place_of(executable, n) >= atomic_load_explicit(&executable->probes.next, memory_order_relaxed);
}

/* If launches are selected by number, each node counts as one of its kernel. */
static bool selects_node(const struct graph *graph)
{
    bool any = false;
    for (size_t i = 0; i < graph->n_kernels; i++) {
        struct graph_node *node = &graph->nodes[graph->kernels[i]];
        node->launch.nth = atomic_fetch_add_explicit(&node->kernel->launches, 1, memory_order_relaxed);
        any = settings_selects_launch(node->launch.nth) || any;
    }
    return any;
}

static bool is_due(struct executable *executable, uint64_t n)
{
    if (settings.n_launches && executable->graph && !selects_node(executable->graph))
        return false;
    if (executable->refused || gate_closed())
        return false;
    return !settings.scheduled || backoff_due(&executable->probes, place_of(executable, n), executable->id,
                                              settings.heavy ? HEAVY_DIVISOR : LIGHT_DIVISOR);
}

static bool is_prepared(struct graph_node *node)
{
    struct kernel *kernel = node->kernel;
    enum kernel_status status = atomic_load_explicit(&kernel->status, memory_order_acquire);
    if (status != KERNEL_NEW)
        return status == KERNEL_PROBED;
    if (!(node->launch.instance = registry_find_of(kernel, node->launch.function)))
        return false;
    const struct reason *reason = prepare_refused(kernel, &node->launch);
    if (!reason && background_takes(kernel, &node->launch))
        reason = reason(BEING_PREPARED);
    if (reason) {
        atomic_store_explicit(&kernel->unprepared, reason, memory_order_release);
        return false;
    }
    const uint64_t began = clock_now();
    status = prepare_kernel(kernel, &node->launch);
    background_waited(clock_now() - began);
    return status == KERNEL_PROBED;
}

/* True if any node's kernel has a probe; prepares those that are new. */
static bool prepare_nodes(const struct graph *graph)
{
    bool any = false;
    for (size_t i = 0; i < graph->n_kernels; i++)
        any = is_prepared(&graph->nodes[graph->kernels[i]]) || any;
    return any;
}

/* True if a node can be probed, and never was. */
static bool is_missing(const struct graph_node *node)
{
    return !node->recorded && !node->disabled && !node->refused &&
           atomic_load_explicit(&node->kernel->status, memory_order_relaxed) == KERNEL_PROBED;
}

/* A sample that had no room for all nodes has the next one right behind it, which continues with the others. */
static void ask_for_rest(struct executable *executable)
{
    bool any = false;
    for (size_t i = 0; i < executable->graph->n_kernels; i++)
        any = any || is_missing(&executable->graph->nodes[executable->graph->kernels[i]]);
    if (any && executable->extras++ < MOST_EXTRAS)
        atomic_store_explicit(&executable->probes.next, 0, memory_order_relaxed);
}

/* The driver keeps replays of one executable in order, but knows nothing of the probed copy: what comes behind that in
 * another stream waits for its event. */
void graph_wait_for_probed_copy(const struct executable *executable, CUstream stream)
{
    if (executable->probed_copy_last && executable->stream != stream)
        REAL_OR_NOT_FOUND(cuStreamWaitEvent, stream, executable->event, 0);
}

static CUresult replay_original(struct executable *executable, struct replay *replay,
                                CUresult (*launch)(CUgraphExec, CUstream), CUstream passed)
{
    struct timed_launch timed;
    graph_wait_for_probed_copy(executable, replay->stream);
    struct timer *timer = timing_begin_replay(executable->times, false, replay->n, &timed);
    if (timer)
        timer_start(timer, replay->stream);
    const CUresult result = launch(executable->handle, passed);
    if (timer)
        timer_stop(timer, replay->stream, false, result);
    timer_give(timer, &timed);
    if (result == CUDA_SUCCESS) {
        executable->launched = true;
        executable->probed_copy_last = false;
        executable->stream = replay->stream;
    }
    return result;
}

/* The reason why the probed copy cannot take this replay; NULL: it did, and *RESULT is what the program gets. */
static const struct reason *replay_probed(struct executable *executable, struct replay *replay, CUresult *result)
{
    CUcontext context = NULL;
    if (REAL_OR_NOT_FOUND(cuCtxGetCurrent, &context) != CUDA_SUCCESS || context != executable->context)
        return reason(GRAPH_OTHER_CONTEXT);
    if (executable->launched && !executable->probed_copy_last && executable->stream != replay->stream)
        return reason(GRAPH_OTHER_STREAM);
    if (!prepare_nodes(executable->graph))
        return reason(GRAPH_NONE_PREPARED);
    replay->time = clock_now();
    const struct reason *reason = graph_probed(executable, replay, result);
    if (!reason)
        ask_for_rest(executable);
    return reason;
}

/* The next replay may have no such reason, and is due then. */
static bool is_passing(const struct reason *reason)
{
    return reason->code == REASON_GRAPH_OTHER_STREAM || reason->code == REASON_GRAPH_BEING_TWINNED ||
           reason->code == REASON_GRAPH_BEING_TIMED;
}

CUresult graph_replay(struct executable *executable, CUresult (*launch)(CUgraphExec, CUstream), CUstream passed,
                      CUstream stream)
{
    const uint64_t kernels = executable->graph ? executable->graph->n_kernels : 0;
    struct replay replay = {.stream = stream};
    CUresult result;
    replay.n = atomic_fetch_add_explicit(&executable->replays, 1, memory_order_relaxed);
    replay.first = launch_count_many(kernels);
    nvtx_launched(replay.first, kernels);
    if (is_due(executable, replay.n)) {
        const struct reason *reason = replay_probed(executable, &replay, &result);
        if (!reason)
            return result;
        if (is_passing(reason))
            atomic_store_explicit(&executable->probes.next, 0, memory_order_relaxed);
        graph_log_passed(executable, reason);
    }
    result = replay_original(executable, &replay, launch, passed);
    graph_log_replays(executable);
    return result;
}
