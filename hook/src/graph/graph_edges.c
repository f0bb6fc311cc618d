#include <stdlib.h>

#include "graph.h"
#include "real.h"

static bool add_edge(const struct graph *graph, CUgraphNode from, CUgraphNode to)
{
    struct graph_node *before = graph_find(graph, from), *after = graph_find(graph, to);
    if (!before || !after)
        return false;
    uint32_t *more = realloc(after->before, (after->n_before + 1) * sizeof *more);
    if (!more)
        return false;
    after->before = more;
    after->before[after->n_before++] = (uint32_t)(before - graph->nodes);
    return true;
}

/* Edges that carry data are identified by the newer form only. */
static CUresult get_edges(CUgraph handle, CUgraphNode *from, CUgraphNode *to, uint64_t *data, size_t *n)
{
    if (real()->cuGraphGetEdges_v2)
        return real()->cuGraphGetEdges_v2(handle, from, to, data, n);
    return REAL_OR_NOT_FOUND(cuGraphGetEdges, handle, from, to, n);
}

static bool read_edges(struct graph *graph, CUgraph handle)
{
    size_t n = 0;
    if (get_edges(handle, NULL, NULL, NULL, &n) != CUDA_SUCCESS)
        return false;
    CUgraphNode *ends = calloc(2 * n + 1, sizeof(CUgraphNode));
    uint64_t *data = calloc(n + 1, sizeof *data); /* 8 bytes of CUgraphEdgeData each */
    bool done = ends && data && (!n || get_edges(handle, ends, ends + n, data, &n) == CUDA_SUCCESS);
    for (size_t i = 0; i < n && done; i++)
        done = add_edge(graph, ends[i], ends[n + i]);
    for (size_t i = 0; i < n && done; i++)
        graph->programmatic = graph->programmatic || data[i];
    free(ends);
    free(data);
    return done;
}

bool graph_read_edges(struct graph *graph, CUgraph handle)
{
    bool done = read_edges(graph, handle);
    for (size_t i = 0; i < graph->n_nodes && done; i++) {
        CUgraph child;
        if (graph->nodes[i].type == CU_GRAPH_NODE_GRAPH)
            done = REAL_OR_NOT_FOUND(cuGraphChildGraphNodeGetGraph, graph->nodes[i].handle, &child) == CUDA_SUCCESS &&
                   read_edges(graph, child);
    }
    return done;
}
