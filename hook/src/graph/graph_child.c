#include "graph_child.h"

#include <stdlib.h>

#include "real.h"

static CUresult follow_kernel(struct graph_node *node, CUgraphNode from, bool *changed)
{
    CUDA_KERNEL_NODE_PARAMS parameters;
    const struct kernel *before = node->kernel;
    CUresult result = graph_kernel_parameters(from, &parameters);
    if (result == CUDA_SUCCESS)
        result = REAL_OR_NOT_FOUND(cuGraphKernelNodeSetParams_v2, node->probed_copy, &parameters);
    if (result != CUDA_SUCCESS)
        return result;
    node->refused = NULL;
    if (!graph_node_set_kernel(node, &parameters))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *changed = *changed || node->kernel != before;
    return CUDA_SUCCESS;
}

static CUresult follow_copy(const struct graph_node *node, CUgraphNode from)
{
    CUDA_MEMCPY3D copy;
    CUresult result = REAL_OR_NOT_FOUND(cuGraphMemcpyNodeGetParams, from, &copy);
    return result == CUDA_SUCCESS ? REAL_OR_NOT_FOUND(cuGraphMemcpyNodeSetParams, node->probed_copy, &copy) : result;
}

static CUresult follow_fill(const struct graph_node *node, CUgraphNode from)
{
    CUDA_MEMSET_NODE_PARAMS fill;
    CUresult result = REAL_OR_NOT_FOUND(cuGraphMemsetNodeGetParams, from, &fill);
    return result == CUDA_SUCCESS ? REAL_OR_NOT_FOUND(cuGraphMemsetNodeSetParams, node->probed_copy, &fill) : result;
}

static CUresult follow_host(const struct graph_node *node, CUgraphNode from)
{
    CUDA_HOST_NODE_PARAMS host;
    CUresult result = REAL_OR_NOT_FOUND(cuGraphHostNodeGetParams, from, &host);
    return result == CUDA_SUCCESS ? REAL_OR_NOT_FOUND(cuGraphHostNodeSetParams, node->probed_copy, &host) : result;
}

static CUresult follow(struct graph_node *node, CUgraphNode from, bool *changed)
{
    int type;
    if (REAL_OR_NOT_FOUND(cuGraphNodeGetType, from, &type) != CUDA_SUCCESS || type != (int)node->type)
        return CUDA_ERROR_INVALID_VALUE;
    switch (node->type) {
    case CU_GRAPH_NODE_KERNEL:
        return follow_kernel(node, from, changed);
    case CU_GRAPH_NODE_MEMCPY:
        return follow_copy(node, from);
    case CU_GRAPH_NODE_MEMSET:
        return follow_fill(node, from);
    case CU_GRAPH_NODE_HOST:
        return follow_host(node, from);
    case CU_GRAPH_NODE_EMPTY:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE; /* nor do we go deeper */
    }
}

/* Nodes of the same topology correspond by their order. */
static CUresult follow_all(const struct graph *graph, uint32_t parent, const CUgraphNode *from, size_t n, bool *changed)
{
    CUresult result = CUDA_SUCCESS;
    size_t place = 0;
    for (size_t i = 0; i < graph->n_nodes && result == CUDA_SUCCESS; i++)
        if (graph->nodes[i].parent == parent)
            result = place < n ? follow(&graph->nodes[i], from[place++], changed) : CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS && place != n ? CUDA_ERROR_INVALID_VALUE : result;
}

/* In the probed copy they are all what they are in the clone then: without probes. */
static CUresult renew(const struct executable *executable, uint32_t parent)
{
    CUgraph child;
    CUresult result =
        REAL_OR_NOT_FOUND(cuGraphChildGraphNodeGetGraph, executable->graph->nodes[parent].probed_copy, &child);
    if (result == CUDA_SUCCESS)
        result = REAL_OR_NOT_FOUND(cuGraphExecChildGraphNodeSetParams, executable->probed_copy,
                                   executable->graph->nodes[parent].probed_copy, child);
    for (size_t i = 0; i < executable->graph->n_nodes; i++)
        if (executable->graph->nodes[i].parent == parent)
            executable->graph->nodes[i].stale = false;
    return result;
}

CUresult graph_child_follow(struct executable *executable, struct graph_node *node, CUgraph from, bool *changed)
{
    const uint32_t parent = (uint32_t)(node - executable->graph->nodes);
    size_t n;
    CUgraphNode *nodes = graph_handles(from, &n);
    CUresult result = nodes ? follow_all(executable->graph, parent, nodes, n, changed) : CUDA_ERROR_OUT_OF_MEMORY;
    free(nodes);
    return result == CUDA_SUCCESS && executable->probed_copy ? renew(executable, parent) : result;
}
