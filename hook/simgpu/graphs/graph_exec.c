/* Executables: graphs as they were when they were instantiated, and how they are changed and run. */

#include <stdlib.h>

#include "capture.h"
#include "current.h"
#include "graph_exec.h"
#include "graph_run.h"
#include "streams.h"

static struct graph_exec *exec_of(CUgraphExec handle)
{
    return handle_object(HANDLE_GRAPH_EXEC, handle);
}

static CUresult make(CUgraphExec *handle, struct graph *graph, unsigned long long flags)
{
    struct graph_node **order = graph_order(graph);
    free(order);
    if (!order)
        return CUDA_ERROR_INVALID_VALUE;
    if (graph_has_memory(graph) && graph->instantiated)
        return CUDA_ERROR_NOT_SUPPORTED;
    struct graph_exec *exec = driver_has_room() ? calloc(1, sizeof *exec) : NULL;
    if (!exec || !(exec->graph = graph_clone(graph))) {
        free(exec);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    exec->flags = flags;
    exec->handle = handle_create(HANDLE_GRAPH_EXEC, exec);
    graph->instantiated = true;
    *handle = exec->handle;
    return CUDA_SUCCESS;
}

API cuGraphInstantiateWithFlags(CUgraphExec *handle, CUgraph graph_handle, unsigned long long flags)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    struct graph *graph = graph_of(graph_handle);
    if (!graph || !handle || flags > 15)
        return leave(CUDA_ERROR_INVALID_VALUE);
    return leave(make(handle, graph, flags));
}

static CUresult instantiate(CUgraphExec *handle, CUgraph graph, CUgraphNode *error_node, char *log, size_t size)
{
    if (error_node)
        *error_node = NULL;
    if (log && size)
        *log = 0;
    return cuGraphInstantiateWithFlags(handle, graph, 0);
}

API cuGraphInstantiate(CUgraphExec *handle, CUgraph graph, CUgraphNode *error_node, char *log, size_t size)
{
    return instantiate(handle, graph, error_node, log, size);
}

API cuGraphInstantiate_v2(CUgraphExec *handle, CUgraph graph, CUgraphNode *error_node, char *log, size_t size)
{
    return instantiate(handle, graph, error_node, log, size);
}

API cuGraphInstantiateWithParams(CUgraphExec *handle, CUgraph graph, CUinstantiation *parameters)
{
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    parameters->error_node = NULL;
    CUresult result = cuGraphInstantiateWithFlags(handle, graph, parameters->flags);
    parameters->result = result ? 1 : 0;
    return result;
}
PER_THREAD_STREAM(cuGraphInstantiateWithParams);

CUresult enter_exec(CUgraphExec handle, struct graph_exec **exec)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    *exec = exec_of(handle);
    return *exec ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_VALUE);
}

API cuGraphExecDestroy(CUgraphExec handle)
{
    struct graph_exec *exec;
    CUresult result = enter_exec(handle, &exec);
    if (result)
        return result;
    graph_free(exec->graph);
    handle_destroy(handle);
    free(exec);
    return leave(CUDA_SUCCESS);
}

API cuGraphExecGetFlags(CUgraphExec handle, uint64_t *flags)
{
    struct graph_exec *exec;
    CUresult result = enter_exec(handle, &exec);
    if (result)
        return result;
    *flags = exec->flags;
    return leave(CUDA_SUCCESS);
}

API cuGraphLaunch(CUgraphExec handle, CUstream stream)
{
    struct graph_exec *exec;
    CUresult result = enter_exec(handle, &exec);
    if (result)
        return result;
    if (!stream_exists(stream))
        return leave(CUDA_ERROR_INVALID_HANDLE);
    struct graph *now = graph_clone(exec->graph);
    if (!now)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    if (capture_of(stream)) {
        struct work work = {.kind = &child_work, .of.child = now};
        return leave(capture_work(stream, &work));
    }
    leave(CUDA_SUCCESS);
    result = graph_run(now);
    driver_lock();
    graph_free(now);
    return leave(result);
}
PER_THREAD_STREAM(cuGraphLaunch);

API cuGraphUpload(CUgraphExec handle, CUstream stream)
{
    struct graph_exec *exec;
    CUresult result = enter_exec(handle, &exec);
    if (result)
        return result;
    if (!stream_exists(stream))
        return leave(CUDA_ERROR_INVALID_HANDLE);
    return leave(driver_has_room() ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}
PER_THREAD_STREAM(cuGraphUpload);
