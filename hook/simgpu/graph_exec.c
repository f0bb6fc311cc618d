/* Executables: graphs as they were when they were instantiated, and how they are changed and run. */

#include <stdlib.h>

#include "graph.h"
#include "stream.h"

struct graph_exec {
    CUgraphExec handle;
    struct graph *graph; /* a copy of its own */
    unsigned long long flags;
};

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
    struct graph_exec *exec = calloc(1, sizeof *exec);
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

/* Locks the driver and finds an executable. Fails, without the lock, for a handle that is none. */
static CUresult enter_exec(CUgraphExec handle, struct graph_exec **exec)
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

static CUresult run(struct graph *graph);

static CUresult run_node(const struct graph_node *node)
{
    if (node->disabled)
        return CUDA_SUCCESS;
    return node->work.type == NODE_CHILD ? run(node->work.of.child) : work_run(&node->work);
}

/* Runs a copy that nobody else changes meanwhile; the lock is not held. */
static CUresult run(struct graph *graph)
{
    struct graph_node **order = graph_order(graph);
    CUresult result = order ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < graph->n_nodes && !result; i++)
        result = run_node(order[i]);
    free(order);
    return result;
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
        struct work work = {.type = NODE_CHILD, .of.child = now};
        return leave(capture_work(stream, &work));
    }
    leave(CUDA_SUCCESS);
    result = run(now);
    driver_lock();
    graph_free(now);
    return leave(result);
}
PER_THREAD_STREAM(cuGraphLaunch);

API cuGraphUpload(CUgraphExec handle, CUstream stream)
{
    struct graph_exec *exec;
    CUresult result = enter_exec(handle, &exec);
    return result ? result : leave(stream_exists(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}
PER_THREAD_STREAM(cuGraphUpload);

/* Locks the driver and finds what NODE, of the graph that was instantiated, is in an executable. */
static CUresult enter_exec_node(CUgraphExec handle, CUgraphNode node_handle, struct graph_node **here)
{
    struct graph_exec *exec;
    CUresult result = enter_exec(handle, &exec);
    if (result)
        return result;
    const struct graph_node *node = node_of(node_handle);
    *here = node ? graph_find_clone(exec->graph, node) : NULL;
    return *here ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_VALUE);
}

static CUresult replace(struct graph_node *node, enum node_type type, struct work *work)
{
    if (node->work.type != type) {
        work_free(work);
        return CUDA_ERROR_INVALID_VALUE;
    }
    work_free(&node->work);
    node->work = *work;
    return CUDA_SUCCESS;
}

static CUresult set_kernel(CUgraphExec handle, CUgraphNode node, const CUkernelNode *parameters)
{
    struct graph_node *here;
    struct work work;
    CUresult result = enter_exec_node(handle, node, &here);
    if (result)
        return result;
    bool cooperative = here->work.type == NODE_KERNEL && here->work.of.kernel.cooperative;
    result = work_of_kernel(&work, parameters, cooperative);
    return leave(result ? result : replace(here, NODE_KERNEL, &work));
}

API cuGraphExecKernelNodeSetParams_v2(CUgraphExec handle, CUgraphNode node, const CUkernelNode *parameters)
{
    return set_kernel(handle, node, parameters);
}

API cuGraphExecKernelNodeSetParams(CUgraphExec handle, CUgraphNode node, const CUkernelNode *parameters)
{
    CUkernelNode newer = *parameters;
    newer.kernel = NULL;
    newer.context = NULL;
    return set_kernel(handle, node, &newer);
}

static CUresult set_plain(CUgraphExec handle, CUgraphNode node, struct work work)
{
    struct graph_node *here;
    CUresult result = enter_exec_node(handle, node, &here);
    return result ? result : leave(replace(here, work.type, &work));
}

API cuGraphExecMemcpyNodeSetParams(CUgraphExec handle, CUgraphNode node, const CUmemcpy3D *copy, CUcontext context)
{
    (void)context;
    return set_plain(handle, node, (struct work){.type = NODE_COPY, .of.copy = *copy});
}

API cuGraphExecMemsetNodeSetParams(CUgraphExec handle, CUgraphNode node, const CUfillNode *fill, CUcontext context)
{
    (void)context;
    return set_plain(handle, node, (struct work){.type = NODE_FILL, .of.fill = *fill});
}

API cuGraphExecHostNodeSetParams(CUgraphExec handle, CUgraphNode node, const CUhostNode *host)
{
    return set_plain(handle, node, (struct work){.type = NODE_HOST, .of.host = *host});
}

API cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode node, unsigned enabled)
{
    struct graph_node *here;
    CUresult result = enter_exec_node(handle, node, &here);
    if (result)
        return result;
    here->disabled = !enabled;
    return leave(CUDA_SUCCESS);
}

API cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode node, unsigned *enabled)
{
    struct graph_node *here;
    CUresult result = enter_exec_node(handle, node, &here);
    if (result)
        return result;
    *enabled = !here->disabled;
    return leave(CUDA_SUCCESS);
}

/* Nodes correspond by their order. */
static int compare(const struct graph *a, const struct graph *b)
{
    if (a->n_nodes != b->n_nodes)
        return UPDATE_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < a->n_nodes; i++) {
        const struct graph_node *here = a->nodes[i], *there = b->nodes[i];
        if (here->n_before != there->n_before)
            return UPDATE_TOPOLOGY_CHANGED;
        if (here->work.type != there->work.type)
            return UPDATE_TYPE_CHANGED;
        int inner = here->work.type == NODE_CHILD ? compare(here->work.of.child, there->work.of.child) : UPDATE_SUCCESS;
        if (inner)
            return inner;
    }
    return UPDATE_SUCCESS;
}

/* The executable's nodes do what those of another graph do, and answer to the same names as before. */
static bool take_over(struct graph *graph, const struct graph *from)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct work work;
        if (graph->nodes[i]->work.type == NODE_CHILD) {
            if (!take_over(graph->nodes[i]->work.of.child, from->nodes[i]->work.of.child))
                return false;
            continue;
        }
        if (!work_copy(&work, &from->nodes[i]->work))
            return false;
        work_free(&graph->nodes[i]->work);
        graph->nodes[i]->work = work;
    }
    return true;
}

/* The topology must be the same. */
API cuGraphExecChildGraphNodeSetParams(CUgraphExec handle, CUgraphNode node, CUgraph child)
{
    struct graph_node *here;
    CUresult result = enter_exec_node(handle, node, &here);
    if (result)
        return result;
    const struct graph *graph = graph_of(child);
    if (!graph || here->work.type != NODE_CHILD || compare(here->work.of.child, graph))
        return leave(CUDA_ERROR_INVALID_VALUE);
    return leave(take_over(here->work.of.child, graph) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

static CUresult update(CUgraphExec handle, CUgraph graph_handle, int *told)
{
    struct graph_exec *exec;
    CUresult result = enter_exec(handle, &exec);
    if (result)
        return result;
    const struct graph *graph = graph_of(graph_handle);
    if (!graph)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *told = compare(exec->graph, graph);
    if (*told)
        return leave(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    return leave(take_over(exec->graph, graph) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

API cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph, CUupdateResult *told)
{
    *told = (CUupdateResult){0};
    return update(handle, graph, &told->result);
}

API cuGraphExecUpdate(CUgraphExec handle, CUgraph graph, CUgraphNode *error_node, int *told)
{
    *error_node = NULL;
    return update(handle, graph, told);
}
