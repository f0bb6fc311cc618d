/* Wrappers of the functions that instantiate, replay and destroy graphs. */
#include "executable.h"
#include "graph_log.h"
#include "graph_probed_copy.h"
#include "graph_replay.h"
#include "hook_state.h"
#include "memory_pressure.h"
#include "real.h"
#include "signals.h"
#include "streams.h"

/* The driver has made HANDLE of GRAPH, which the program may destroy immediately. */
static CUresult instantiated(CUresult result, const CUgraphExec *handle, CUgraph graph, unsigned long long flags)
{
    if (result != CUDA_SUCCESS || !hook_active())
        return result;
    signals_hold();
    int mode = capture_mode_relax();
    struct executable *executable = executables_add(*handle, graph, flags);
    if (executable) {
        graph_log_nodes(executable);
        probed_copy_clone(executable, graph);
    }
    capture_mode_restore(mode);
    signals_release();
    return result;
}

#define INSTANTIATE(handle, graph, flags, function, ...)      \
    do {                                                      \
        CUresult result = WITH_MEMORY(function, __VA_ARGS__); \
        return instantiated(result, handle, graph, flags);    \
    } while (0)

CUresult cuGraphInstantiate(CUgraphExec *handle, CUgraph graph, CUgraphNode *error_node, char *log, size_t size)
{
    INSTANTIATE(handle, graph, 0, cuGraphInstantiate, handle, graph, error_node, log, size);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *handle, CUgraph graph, CUgraphNode *error_node, char *log, size_t size)
{
    INSTANTIATE(handle, graph, 0, cuGraphInstantiate_v2, handle, graph, error_node, log, size);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *handle, CUgraph graph, unsigned long long flags)
{
    INSTANTIATE(handle, graph, flags, cuGraphInstantiateWithFlags, handle, graph, flags);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *handle, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    INSTANTIATE(handle, graph, parameters->flags, cuGraphInstantiateWithParams, handle, graph, parameters);
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *handle, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    INSTANTIATE(handle, graph, parameters->flags, cuGraphInstantiateWithParams_ptsz, handle, graph, parameters);
}

static CUresult launch_plain(CUgraphExec handle, CUstream stream)
{
    return WITH_MEMORY(cuGraphLaunch, handle, stream);
}

static CUresult launch_per_thread(CUgraphExec handle, CUstream stream)
{
    return WITH_MEMORY(cuGraphLaunch_ptsz, handle, stream);
}

/* In a capture it becomes a child graph of another, and is replayed with that. */
static CUresult replay(CUresult (*launch)(CUgraphExec, CUstream), CUgraphExec handle, CUstream passed, CUstream stream)
{
    struct executable *executable = executables_find(handle);
    if (!executable || stream_is_capturing(stream))
        return launch(handle, passed);
    if (!hook_active()) { /* the trace is complete, yet the probed copy may be at work */
        graph_wait_for_probed_copy(executable, stream);
        return launch(handle, passed);
    }
    signals_hold();
    const CUresult result =
        hook_launching() ? graph_replay(executable, launch, passed, stream) : launch(handle, passed);
    signals_release();
    return result;
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream)
{
    return replay(launch_plain, handle, stream, stream);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec handle, CUstream stream)
{
    return replay(launch_per_thread, handle, stream, stream ? stream : CU_STREAM_PER_THREAD);
}

/* The probed copy goes first: it holds what the graph holds, and the program may wait for that to be let go. */
CUresult cuGraphExecDestroy(CUgraphExec handle)
{
    struct executable *executable = executables_find(handle);
    if (executable) {
        signals_hold();
        probed_copy_drop(executable, NULL);
        graph_log_destroyed(executable);
        if (executable->event)
            REAL_OR_NOT_FOUND(cuEventDestroy_v2, executable->event);
        executables_remove(executable);
        signals_release();
    }
    return REAL_OR_NOT_FOUND(cuGraphExecDestroy, handle);
}
