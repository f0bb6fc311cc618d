#include <stdlib.h>

#include "graph.h"
#include "real.h"

static bool match_level(struct graph *graph, CUgraph clone, uint32_t parent);

/* Child graphs are copies, too, whose nodes the driver may not find by those of the original: then their order
 * tells. */
static CUgraphNode counterpart(CUgraphNode handle, CUgraph clone, const CUgraphNode *in_order, size_t place)
{
    CUgraphNode counterpart_node = NULL;
    if (REAL_OR_NOT_FOUND(cuGraphNodeFindInClone, &counterpart_node, handle, clone) == CUDA_SUCCESS)
        return counterpart_node;
    return in_order ? in_order[place] : NULL;
}

static bool match_node(struct graph *graph, uint32_t index, CUgraphNode probed_copy)
{
    struct graph_node *node = &graph->nodes[index];
    CUgraph child;
    int type;
    if (!probed_copy || REAL_OR_NOT_FOUND(cuGraphNodeGetType, probed_copy, &type) != CUDA_SUCCESS ||
        type != (int)node->type)
        return false;
    node->probed_copy = probed_copy;
    return node->type != CU_GRAPH_NODE_GRAPH ||
           (REAL_OR_NOT_FOUND(cuGraphChildGraphNodeGetGraph, probed_copy, &child) == CUDA_SUCCESS &&
            match_level(graph, child, index));
}

static size_t count_level(const struct graph *graph, uint32_t parent)
{
    size_t n = 0;
    for (size_t i = 0; i < graph->n_nodes; i++)
        n += graph->nodes[i].parent == parent;
    return n;
}

static bool match_level(struct graph *graph, CUgraph clone, uint32_t parent)
{
    size_t n = count_level(graph, parent), place = 0;
    CUgraphNode *in_order = parent == GRAPH_TOP ? NULL : calloc(n + 1, sizeof(CUgraphNode));
    bool done =
        parent == GRAPH_TOP || (in_order && REAL_OR_NOT_FOUND(cuGraphGetNodes, clone, in_order, &n) == CUDA_SUCCESS);
    for (uint32_t i = 0; i < graph->n_nodes && done; i++)
        if (graph->nodes[i].parent == parent)
            done = match_node(graph, i, counterpart(graph->nodes[i].handle, clone, in_order, place++));
    free(in_order);
    return done;
}

bool graph_match(struct graph *graph, CUgraph clone)
{
    return match_level(graph, clone, GRAPH_TOP);
}
