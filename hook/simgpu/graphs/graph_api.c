/* Graphs as programs make them and ask for them. */

#include <stdlib.h>
#include <string.h>

#include "graph.h"

/* Locks the driver and finds a graph. Fails, without the lock, for a handle that is none. */
static CUresult enter_graph(CUgraph handle, struct graph **graph)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    *graph = graph_of(handle);
    return *graph ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_VALUE);
}

static CUresult enter_node(CUgraphNode handle, struct graph_node **node)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    *node = node_of(handle);
    return *node ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_VALUE);
}

API cuGraphCreate(CUgraph *handle, unsigned flags)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    if (!handle || flags)
        return leave(CUDA_ERROR_INVALID_VALUE);
    struct graph *graph = graph_make();
    if (graph)
        *handle = graph->handle;
    return leave(graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

API cuGraphDestroy(CUgraph handle)
{
    struct graph *graph;
    CUresult result = enter_graph(handle, &graph);
    if (result)
        return result;
    if (graph->is_child)
        return leave(CUDA_ERROR_INVALID_VALUE);
    graph_free(graph);
    return leave(CUDA_SUCCESS);
}

/* As the real driver: memory nodes cannot be there twice. */
API cuGraphClone(CUgraph *clone, CUgraph original)
{
    struct graph *graph;
    CUresult result = enter_graph(original, &graph);
    if (result)
        return result;
    if (!clone)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (graph_has_memory(graph))
        return leave(CUDA_ERROR_NOT_SUPPORTED);
    struct graph *made = graph_clone(graph);
    if (made)
        *clone = made->handle;
    return leave(made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

API cuGraphNodeFindInClone(CUgraphNode *copy, CUgraphNode original, CUgraph clone)
{
    struct graph *graph;
    CUresult result = enter_graph(clone, &graph);
    if (result)
        return result;
    const struct graph_node *node = node_of(original), *here = NULL;
    for (size_t i = 0; node && i < graph->n_nodes; i++)
        if (graph->nodes[i]->origin == node->id)
            here = graph->nodes[i];
    if (!here || !copy)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *copy = here->handle;
    return leave(CUDA_SUCCESS);
}

API cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph *child)
{
    struct graph_node *node;
    CUresult result = enter_node(handle, &node);
    if (result)
        return result;
    if (node->work.kind->type != NODE_CHILD || !child)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *child = node->work.of.child->handle;
    return leave(CUDA_SUCCESS);
}

API cuGraphNodeGetType(CUgraphNode handle, int *type)
{
    struct graph_node *node;
    CUresult result = enter_node(handle, &node);
    if (result)
        return result;
    if (!type)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *type = (int)node->work.kind->type;
    return leave(CUDA_SUCCESS);
}

/* Copies N handles to an array of the program's, as many as fit, and NULL to the rest of it. */
static void give(CUgraphNode *to, size_t *room, struct graph_node *const *nodes, size_t n)
{
    for (size_t i = 0; to && i < *room; i++)
        to[i] = i < n ? nodes[i]->handle : NULL;
    if (!to || n < *room)
        *room = n;
}

API cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *n)
{
    struct graph *graph;
    CUresult result = enter_graph(handle, &graph);
    if (result)
        return result;
    if (!n)
        return leave(CUDA_ERROR_INVALID_VALUE);
    give(nodes, n, graph->nodes, graph->n_nodes);
    return leave(CUDA_SUCCESS);
}

API cuGraphGetRootNodes(CUgraph handle, CUgraphNode *nodes, size_t *n)
{
    struct graph *graph;
    CUresult result = enter_graph(handle, &graph);
    if (result)
        return result;
    struct graph_node **roots = calloc(graph->n_nodes + 1, sizeof *roots);
    size_t n_roots = 0;
    for (size_t i = 0; roots && i < graph->n_nodes; i++)
        if (!graph->nodes[i]->n_before)
            roots[n_roots++] = graph->nodes[i];
    if (roots && n)
        give(nodes, n, roots, n_roots);
    free(roots);
    return leave(n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

API cuGraphGetEdges(CUgraph handle, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
    struct graph *graph;
    size_t n_edges = 0;
    CUresult result = enter_graph(handle, &graph);
    if (result)
        return result;
    if (!n || !from != !to)
        return leave(CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (size_t k = 0; k < graph->nodes[i]->n_before; k++, n_edges++)
            if (from && n_edges < *n) {
                from[n_edges] = graph->nodes[i]->before[k]->handle;
                to[n_edges] = graph->nodes[i]->handle;
            }
    *n = !from || n_edges < *n ? n_edges : *n;
    return leave(CUDA_SUCCESS);
}

API cuGraphGetEdges_v2(CUgraph handle, CUgraphNode *from, CUgraphNode *to, void *edges, size_t *n)
{
    CUresult result = cuGraphGetEdges(handle, from, to, n);
    if (!result && edges && from)
        memset(edges, 0, *n * 8); /* CUgraphEdgeData: all of them are ordinary */
    return result;
}

API cuGraphNodeGetDependencies(CUgraphNode handle, CUgraphNode *nodes, size_t *n)
{
    struct graph_node *node;
    CUresult result = enter_node(handle, &node);
    if (result)
        return result;
    if (n)
        give(nodes, n, node->before, node->n_before);
    return leave(n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

API cuGraphAddDependencies(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
    struct graph *graph;
    CUresult result = enter_graph(handle, &graph);
    if (result)
        return result;
    for (size_t i = 0; i < n && !result; i++) {
        struct graph_node *a = node_of(from[i]), *b = node_of(to[i]);
        if (!a || !b || a == b || a->graph != graph || b->graph != graph)
            result = CUDA_ERROR_INVALID_VALUE;
        else if (!node_wait_for(b, a))
            result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return leave(result);
}

API cuGraphAddDependencies_v2(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, const void *edges,
                              size_t n)
{
    (void)edges;
    return cuGraphAddDependencies(handle, from, to, n);
}

API cuGraphDestroyNode(CUgraphNode handle)
{
    struct graph_node *node;
    CUresult result = enter_node(handle, &node);
    if (result)
        return result;
    node_remove(node);
    return leave(CUDA_SUCCESS);
}
