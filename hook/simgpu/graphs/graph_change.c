/* Executables as programs change them: single nodes, child graphs, all that another graph says. */

#include <string.h>

#include "graph_exec.h"
#include "launch.h"
#include "work_kinds.h"

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

static CUresult replace(struct graph_node *node, struct work *work)
{
    if (node->work.kind != work->kind) {
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
    bool cooperative = here->work.kind->type == NODE_KERNEL && here->work.of.kernel.cooperative;
    result = work_of_kernel(&work, parameters, cooperative);
    if (!result && here->work.kind->type == NODE_KERNEL)
        memcpy(work.of.kernel.cluster, here->work.of.kernel.cluster, sizeof work.of.kernel.cluster);
    return leave(result ? result : replace(here, &work));
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
    return result ? result : leave(replace(here, &work));
}

API cuGraphExecMemcpyNodeSetParams(CUgraphExec handle, CUgraphNode node, const CUmemcpy3D *copy, CUcontext context)
{
    (void)context;
    return set_plain(handle, node, (struct work){.kind = &copy_work, .of.copy = *copy});
}

API cuGraphExecMemsetNodeSetParams(CUgraphExec handle, CUgraphNode node, const CUfillNode *fill, CUcontext context)
{
    (void)context;
    return set_plain(handle, node, (struct work){.kind = &fill_work, .of.fill = *fill});
}

API cuGraphExecHostNodeSetParams(CUgraphExec handle, CUgraphNode node, const CUhostNode *host)
{
    return set_plain(handle, node, (struct work){.kind = &host_work, .of.host = *host});
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
        if (here->work.kind != there->work.kind)
            return UPDATE_TYPE_CHANGED;
        int inner =
            here->work.kind->type == NODE_CHILD ? compare(here->work.of.child, there->work.of.child) : UPDATE_SUCCESS;
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
        if (graph->nodes[i]->work.kind->type == NODE_CHILD) {
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
    if (!graph || here->work.kind->type != NODE_CHILD || compare(here->work.of.child, graph))
        return leave(CUDA_ERROR_INVALID_VALUE);
    return leave(take_over(here->work.of.child, graph) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

static CUresult update(CUgraphExec handle, CUgraph graph_handle, int *update_result)
{
    struct graph_exec *exec;
    CUresult result = enter_exec(handle, &exec);
    if (result)
        return result;
    const struct graph *graph = graph_of(graph_handle);
    if (!graph)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *update_result = compare(exec->graph, graph);
    if (*update_result)
        return leave(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    return leave(take_over(exec->graph, graph) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

API cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph, CUupdateResult *update_result)
{
    *update_result = (CUupdateResult){0};
    return update(handle, graph, &update_result->result);
}

API cuGraphExecUpdate(CUgraphExec handle, CUgraph graph, CUgraphNode *error_node, int *update_result)
{
    *error_node = NULL;
    return update(handle, graph, update_result);
}
