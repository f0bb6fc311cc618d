/* Wrappers of the functions that change executables. What the driver accepted for the program's is done in the clone of
 * its graph, and in the probed copy, too; where that cannot be, the probed copy is given up. */
#include <string.h>

#include "executable.h"
#include "graph_child.h"
#include "graph_log.h"
#include "graph_probed_copy.h"
#include "graph_replay.h"
#include "hook_state.h"
#include "memory_pressure.h"
#include "real.h"
#include "reasons.h"
#include "signals.h"
#include "streams.h"

/* The executable behind a handle if there is a probed copy to be kept like it, or may be. */
static struct executable *with_clone(CUgraphExec handle)
{
    struct executable *executable = hook_active() ? executables_find(handle) : NULL;
    return executable && executable->clone ? executable : NULL;
}

static void follow_not(struct executable *executable)
{
    probed_copy_drop(executable, reason(GRAPH_CHANGED));
}

/* A change that the clone cannot follow. */
static CUresult lost(CUgraphExec handle, CUresult result)
{
    struct executable *executable = result == CUDA_SUCCESS ? with_clone(handle) : NULL;
    if (executable)
        follow_not(executable);
    return result;
}

/* Does IN_CLONE to the clone's node, and IN_PROBED_COPY to the probed copy's, with `node` and `executable` as their
 * names. */
#define FOLLOW(handle, program_node, result, in_clone, in_probed_copy)                                            \
    do {                                                                                                          \
        struct executable *executable = (result) == CUDA_SUCCESS ? with_clone(handle) : NULL;                     \
        struct graph_node *node = executable ? graph_find(executable->graph, program_node) : NULL;                \
        if (!executable)                                                                                          \
            return result;                                                                                        \
        probed_copies_lock();                                                                                     \
        const bool follows =                                                                                      \
            node && (in_clone) == CUDA_SUCCESS && (!executable->probed_copy || (in_probed_copy) == CUDA_SUCCESS); \
        probed_copies_unlock();                                                                                   \
        if (!follows)                                                                                             \
            follow_not(executable);                                                                               \
        return result;                                                                                            \
    } while (0)

/* Nodes have become other kernels: they are logged anew. */
static void tell_anew(struct executable *executable)
{
    graph_log_all_replays(executable);
    graph_log_nodes(executable);
}

static CUresult changed_kernel(struct executable *executable, struct graph_node *node,
                               const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    const struct kernel *before = node->kernel;
    const CUresult result = REAL_OR_NOT_FOUND(cuGraphKernelNodeSetParams_v2, node->probed_copy, parameters);
    if (result != CUDA_SUCCESS || !graph_node_set_kernel(node, parameters))
        return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
    node->stale = true; /* the probed copy's next replay takes it over */
    node->refused = NULL;
    if (node->kernel != before)
        tell_anew(executable);
    return CUDA_SUCCESS;
}

static CUresult follow_kernel(CUgraphExec handle, CUgraphNode program_node, CUresult result,
                              const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    FOLLOW(handle, program_node, result, changed_kernel(executable, node, parameters), CUDA_SUCCESS);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec handle, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    return follow_kernel(handle, node, REAL_OR_NOT_FOUND(cuGraphExecKernelNodeSetParams_v2, handle, node, parameters),
                         parameters);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec handle, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    CUresult result = REAL_OR_NOT_FOUND(cuGraphExecKernelNodeSetParams, handle, node, parameters);
    CUDA_KERNEL_NODE_PARAMS newer = {0};
    if (result == CUDA_SUCCESS)
        memcpy(&newer, parameters, offsetof(CUDA_KERNEL_NODE_PARAMS, kern));
    return follow_kernel(handle, node, result, &newer);
}

CUresult cuGraphExecNodeSetParams(CUgraphExec handle, CUgraphNode node, CUgraphNodeParams *parameters)
{
    CUresult result = REAL_OR_NOT_FOUND(cuGraphExecNodeSetParams, handle, node, parameters);
    if (result == CUDA_SUCCESS && parameters->type == CU_GRAPH_NODE_KERNEL)
        return follow_kernel(handle, node, result, &parameters->of.kernel);
    return lost(handle, result);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec handle, CUgraphNode program_node, const CUDA_MEMCPY3D *copy,
                                        CUcontext context)
{
    CUresult result = REAL_OR_NOT_FOUND(cuGraphExecMemcpyNodeSetParams, handle, program_node, copy, context);
    FOLLOW(handle, program_node, result, REAL_OR_NOT_FOUND(cuGraphMemcpyNodeSetParams, node->probed_copy, copy),
           REAL_OR_NOT_FOUND(cuGraphExecMemcpyNodeSetParams, executable->probed_copy, node->probed_copy, copy,
                             context));
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec handle, CUgraphNode program_node,
                                        const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)
{
    CUresult result = REAL_OR_NOT_FOUND(cuGraphExecMemsetNodeSetParams, handle, program_node, fill, context);
    FOLLOW(handle, program_node, result, REAL_OR_NOT_FOUND(cuGraphMemsetNodeSetParams, node->probed_copy, fill),
           REAL_OR_NOT_FOUND(cuGraphExecMemsetNodeSetParams, executable->probed_copy, node->probed_copy, fill,
                             context));
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec handle, CUgraphNode program_node, const CUDA_HOST_NODE_PARAMS *host)
{
    CUresult result = REAL_OR_NOT_FOUND(cuGraphExecHostNodeSetParams, handle, program_node, host);
    FOLLOW(handle, program_node, result, REAL_OR_NOT_FOUND(cuGraphHostNodeSetParams, node->probed_copy, host),
           REAL_OR_NOT_FOUND(cuGraphExecHostNodeSetParams, executable->probed_copy, node->probed_copy, host));
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec handle, CUgraphNode program_node, CUevent event)
{
    CUresult result = REAL_OR_NOT_FOUND(cuGraphExecEventRecordNodeSetEvent, handle, program_node, event);
    FOLLOW(handle, program_node, result, REAL_OR_NOT_FOUND(cuGraphEventRecordNodeSetEvent, node->probed_copy, event),
           REAL_OR_NOT_FOUND(cuGraphExecEventRecordNodeSetEvent, executable->probed_copy, node->probed_copy, event));
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec handle, CUgraphNode program_node, CUevent event)
{
    CUresult result = REAL_OR_NOT_FOUND(cuGraphExecEventWaitNodeSetEvent, handle, program_node, event);
    FOLLOW(handle, program_node, result, REAL_OR_NOT_FOUND(cuGraphEventWaitNodeSetEvent, node->probed_copy, event),
           REAL_OR_NOT_FOUND(cuGraphExecEventWaitNodeSetEvent, executable->probed_copy, node->probed_copy, event));
}

/* Nodes are enabled in an executable, not in its graph. */
static CUresult note_enabled(struct graph_node *node, bool enabled)
{
    node->disabled = !enabled;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode program_node, unsigned int enabled)
{
    CUresult result = REAL_OR_NOT_FOUND(cuGraphNodeSetEnabled, handle, program_node, enabled);
    FOLLOW(handle, program_node, result, note_enabled(node, enabled),
           REAL_OR_NOT_FOUND(cuGraphNodeSetEnabled, executable->probed_copy, node->probed_copy, enabled));
}

static CUresult changed_child(struct executable *executable, struct graph_node *node, CUgraph child)
{
    bool changed = false;
    const CUresult result = graph_child_follow(executable, node, child, &changed);
    if (changed)
        tell_anew(executable);
    return result;
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec handle, CUgraphNode program_node, CUgraph child)
{
    CUresult result = REAL_OR_NOT_FOUND(cuGraphExecChildGraphNodeSetParams, handle, program_node, child);
    FOLLOW(handle, program_node, result, changed_child(executable, node, child), CUDA_SUCCESS);
}

CUresult cuGraphExecExternalSemaphoresSignalNodeSetParams(CUgraphExec handle, CUgraphNode node, const void *parameters)
{
    return lost(handle, REAL_OR_NOT_FOUND(cuGraphExecExternalSemaphoresSignalNodeSetParams, handle, node, parameters));
}

CUresult cuGraphExecExternalSemaphoresWaitNodeSetParams(CUgraphExec handle, CUgraphNode node, const void *parameters)
{
    return lost(handle, REAL_OR_NOT_FOUND(cuGraphExecExternalSemaphoresWaitNodeSetParams, handle, node, parameters));
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec handle, CUgraphNode node, const void *parameters)
{
    return lost(handle, REAL_OR_NOT_FOUND(cuGraphExecBatchMemOpNodeSetParams, handle, node, parameters));
}

/* The executable does what GRAPH says from now on. That is read and cloned only if the next replay is to be probed: a
 * program may update its graph before each one. */
static CUresult updated(CUgraphExec handle, CUresult result, CUgraph graph)
{
    struct executable *executable = result == CUDA_SUCCESS && hook_active() ? executables_find(handle) : NULL;
    if (!executable)
        return result;
    signals_hold();
    int mode = capture_mode_relax();
    probed_copy_drop(executable, NULL);
    executable->updated = true;
    executable->refused = reason(GRAPH_UPDATED);
    if (graph_replay_is_near(executable)) {
        graph_log_all_replays(executable);
        executable_read(executable, graph);
        graph_log_nodes(executable);
        probed_copy_clone(executable, graph);
    }
    capture_mode_restore(mode);
    signals_release();
    return result;
}

CUresult cuGraphExecUpdate(CUgraphExec handle, CUgraph graph, CUgraphNode *error_node, int *update_result)
{
    return updated(handle, WITH_MEMORY(cuGraphExecUpdate, handle, graph, error_node, update_result), graph);
}

CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph, void *update_result)
{
    return updated(handle, WITH_MEMORY(cuGraphExecUpdate_v2, handle, graph, update_result), graph);
}
