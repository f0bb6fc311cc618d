#include "graph_probed.h"

#include <stdlib.h>

#include "errors.h"
#include "graph_clock.h"
#include "graph_log.h"
#include "graph_probed_copy.h"
#include "launch_counts.h"
#include "launch_log.h"
#include "probed_launch.h"
#include "real.h"
#include "reasons.h"
#include "registry.h"
#include "reservations.h"
#include "settings.h"
#include "shared_variables.h"
#include "streams.h"
#include "timing.h"
#include "watchdog.h"

/* A node that is probed in this replay. */
struct entry {
    struct graph_node *node;
    struct launch launch;
    struct launch_resources resources;
};

/* The entries of one replay. */
struct entries {
    struct entry *of;
    struct graph_node **nodes;
    size_t n;
};

static CUresult set_kernel(const struct executable *executable, const struct graph_node *node,
                           const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    if (real()->cuGraphExecKernelNodeSetParams_v2)
        return real()->cuGraphExecKernelNodeSetParams_v2(executable->probed_copy, node->probed_copy, parameters);
    return REAL_OR_NOT_FOUND(cuGraphExecKernelNodeSetParams, executable->probed_copy, node->probed_copy, parameters);
}

static struct launch launch_of(const struct executable *executable, const struct replay *replay, size_t ordinal,
                               const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    struct launch launch = executable->graph->nodes[executable->graph->kernels[ordinal]].launch;
    launch.parameters = parameters->kernelParams;
    launch.extra = parameters->kernelParams ? NULL : parameters->extra;
    launch.stream = replay->stream;
    launch.time = replay->time;
    launch.number = replay->first + ordinal;
    return launch;
}

/* The probed copy's node does what it would with the probe in it, and with memory for this replay's records. */
static const struct reason *exchange_with(const struct executable *executable, struct entry *entry,
                                          CUDA_KERNEL_NODE_PARAMS *parameters, struct arguments *arguments)
{
    const struct launch_resources *resources = &entry->resources;
    const struct reason *reason = arguments ? arguments_fill(arguments, &entry->launch, resources->probe,
                                                             resources->variant, resources->claim.memory)
                                            : reason(HOST_MEMORY);
    if (reason)
        return reason;
    CUresult result = shared_copy_constants(resources->probe, resources->variant, entry->launch.stream);
    if (result != CUDA_SUCCESS)
        return reason_with(CONSTANTS_NOT_COPIED, reason_error_name(result));
    if (resources->probe->resident)
        watchdog_expects(&entry->launch, resources->probe);
    parameters->func = resources->variant->function;
    parameters->kern = NULL;
    parameters->kernelParams = arguments->pointers;
    parameters->extra = NULL;
    entry->node->stale = true;
    result = set_kernel(executable, entry->node, parameters);
    return result == CUDA_SUCCESS ? NULL
                                  : (entry->node->refused = reason_with(GRAPH_NODE_REFUSED, reason_error_name(result)));
}

static const struct reason *exchange(const struct executable *executable, struct entry *entry,
                                     CUDA_KERNEL_NODE_PARAMS *parameters)
{
    struct arguments *arguments = arguments_take();
    const struct reason *reason = exchange_with(executable, entry, parameters, arguments);
    arguments_give(arguments);
    return reason;
}

/* The reason why a kernel is not probed, or NULL. One that could not be prepared so far has no reason of its own
 * yet. */
static const struct reason *unprobed(const struct kernel *kernel)
{
    const struct reason *reason;
    switch (atomic_load_explicit(&kernel->status, memory_order_acquire)) {
    case KERNEL_PROBED:
        return NULL;
    case KERNEL_PASSED:
        return atomic_load(&kernel->reason);
    default:
        reason = atomic_load_explicit(&kernel->unprepared, memory_order_relaxed);
        return reason ? reason : reason(BEING_PREPARED);
    }
}

/* The reason why a node is not probed in this replay, or NULL. */
static const struct reason *take(const struct executable *executable, const struct replay *replay, size_t ordinal,
                                 bool first, struct entry *entry)
{
    struct graph_node *node = &executable->graph->nodes[executable->graph->kernels[ordinal]];
    CUDA_KERNEL_NODE_PARAMS parameters;
    if (node->refused)
        return node->refused;
    if (node->disabled)
        return reason(GRAPH_NO_KERNEL);
    if (!settings_selects_launch(node->launch.nth))
        return reason(NOT_SELECTED);
    const struct reason *reason = unprobed(node->kernel);
    if (reason)
        return reason;
    CUresult result = graph_kernel_parameters(node->probed_copy, &parameters);
    if (result != CUDA_SUCCESS)
        return node->refused = reason_with(GRAPH_NODE_REFUSED, reason_error_name(result));
    struct instance *instance = registry_find_of(node->kernel, node->launch.function);
    if (!instance)
        return reason(KERNEL_UNLOADED);
    if (!parameters.func && parameters.ctx && parameters.ctx != executable->context)
        return node->refused = reason(GRAPH_OTHER_CONTEXT);
    entry->node = node;
    entry->launch = launch_of(executable, replay, ordinal, &parameters);
    entry->launch.instance = instance;
    entry->launch.replayed = !first;
    reason = probed_take_in_turn(&entry->resources, &entry->launch, node->kernel, executable->context);
    if (reason) {
        budget_refused(reason);
        return reason;
    }
    reason = exchange(executable, entry, &parameters);
    if (reason)
        launch_resources_launched(&entry->resources, &entry->launch, CUDA_ERROR_INVALID_VALUE);
    return reason;
}

static bool is_full(const struct reason *reason)
{
    return reason && reason->code == REASON_PROBE_MEMORY;
}

/* From where the sample before had no more room. Returns why the first node that could not be is not probed. */
static const struct reason *take_window(struct executable *executable, const struct replay *replay,
                                        struct entries *entries)
{
    const size_t n = executable->graph->n_kernels, begin = executable->window;
    const struct reason *first = NULL;
    for (size_t i = 0; i < n; i++) {
        const size_t ordinal = (begin + i) % n;
        const struct reason *reason = take(executable, replay, ordinal, !entries->n, &entries->of[entries->n]);
        if (!reason)
            entries->of[entries->n++].node->taken = true;
        first = first ? first : reason;
        if (is_full(reason)) {
            executable->window = ordinal;
            break;
        }
    }
    return first;
}

/* Nodes that an earlier replay had probed, or that the program has changed since, become as in the clone. */
static CUresult restore(const struct executable *executable)
{
    const struct graph *graph = executable->graph;
    for (size_t i = 0; i < graph->n_kernels; i++) {
        struct graph_node *node = &graph->nodes[graph->kernels[i]];
        CUDA_KERNEL_NODE_PARAMS parameters;
        if (!node->stale || node->taken)
            continue;
        CUresult result = graph_kernel_parameters(node->probed_copy, &parameters);
        if (result == CUDA_SUCCESS)
            result = set_kernel(executable, node, &parameters);
        if (result != CUDA_SUCCESS)
            return result;
        node->stale = false;
    }
    return CUDA_SUCCESS;
}

static CUresult record_event(struct executable *executable, CUstream stream)
{
    if (!executable->event) {
        CUresult result = REAL_OR_NOT_FOUND(cuEventCreate, &executable->event, CU_EVENT_DISABLE_TIMING);
        if (result != CUDA_SUCCESS) {
            executable->event = NULL;
            return result;
        }
    }
    return REAL_OR_NOT_FOUND(cuEventRecord, executable->event, stream);
}

/* Without any probe it is neither what the program's own takes nor what probes cost. */
static CUresult launch(struct executable *executable, const struct replay *replay, bool probed)
{
    struct timed_launch timed;
    if (!executable->event) { /* before anything runs that others could not wait for */
        const CUresult made = record_event(executable, replay->stream);
        if (made != CUDA_SUCCESS)
            return made;
    }
    struct timer *timer = probed ? timing_begin_replay(executable->times, true, replay->n, &timed) : NULL;
    if (timer)
        timer_start(timer, replay->stream);
    const CUresult result = REAL_OR_NOT_FOUND(cuGraphLaunch, executable->probed_copy, replay->stream);
    if (timer)
        timer_stop(timer, replay->stream, true, result);
    timer_give(timer, &timed);
    return result;
}

static void launched(struct executable *executable, const struct replay *replay)
{
    executable->launched = executable->probed_copy_last = true;
    executable->stream = replay->stream;
    record_event(executable, replay->stream);
}

static void give(const struct entries *entries, CUresult result)
{
    for (size_t i = 0; i < entries->n; i++) {
        struct entry *entry = &entries->of[i];
        entry->node->taken = false;
        if (result == CUDA_SUCCESS) {
            entry->node->recorded = true;
            launch_log_probed(&entry->launch, entry->resources.probe, entry->launch.parameters, result);
            launch_count_probed();
        }
        launch_resources_launched(&entry->resources, &entry->launch, result);
    }
}

static void log_replay(struct executable *executable, const struct replay *replay, const struct entries *entries)
{
    for (size_t i = 0; i < entries->n; i++)
        entries->nodes[i] = entries->of[i].node;
    graph_log_probed(executable, replay->n, replay->first, replay->time, entries->nodes, entries->n);
}

/* The lock of the probed copies is held. */
static const struct reason *replay_probed_copy(struct executable *executable, const struct replay *replay,
                                               struct entries *entries, CUresult *result)
{
    const struct reason *reason = probed_copy_ready(executable);
    if (reason)
        return reason;
    if (graph_clock_is_unread(executable))
        return reason(GRAPH_BEING_TIMED);
    const bool probed = !graph_clock_wants_originals(executable);
    if (probed)
        reason = take_window(executable, replay, entries);
    if (probed && !entries->n)
        return reason ? reason : reason(NOT_SAMPLED);
    *result = restore(executable);
    if (*result == CUDA_SUCCESS)
        *result = launch(executable, replay, probed);
    if (*result == CUDA_SUCCESS) {
        launched(executable, replay);
        graph_clock_replayed(executable, replay, probed);
        if (probed)
            log_replay(executable, replay, entries);
    }
    give(entries, *result);
    return *result == CUDA_SUCCESS || error_is_sticky(*result)
               ? NULL
               : reason_with(GRAPH_TWIN_FAILED, reason_error_name(*result));
}

const struct reason *graph_probed(struct executable *executable, const struct replay *replay, CUresult *result)
{
    const size_t n = executable->graph->n_kernels;
    struct entries entries = {.of = calloc(n, sizeof *entries.of), .nodes = calloc(n, sizeof(struct graph_node *))};
    const struct reason *reason = reason(HOST_MEMORY);
    if (entries.of && entries.nodes && !probed_copies_try_lock()) {
        reason = reason(GRAPH_BEING_TWINNED);
    } else if (entries.of && entries.nodes) {
        int mode = capture_mode_relax();
        reason = replay_probed_copy(executable, replay, &entries, result);
        probed_copies_unlock();
        capture_mode_restore(mode);
    }
    free(entries.of);
    free(entries.nodes);
    if (reason && reason->code == REASON_GRAPH_TWIN_FAILED)
        probed_copy_drop(executable, reason);
    return reason;
}
