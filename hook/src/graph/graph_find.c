#define _GNU_SOURCE
#include <stdlib.h>

#include "graph.h"

static int compare_handles(const void *a, const void *b, void *nodes)
{
    const struct graph_node *all = nodes;
    const uintptr_t left = (uintptr_t)all[*(const uint32_t *)a].handle;
    const uintptr_t right = (uintptr_t)all[*(const uint32_t *)b].handle;
    return left < right ? -1 : left > right;
}

bool graph_sort(struct graph *graph)
{
    graph->by_handle = calloc(graph->n_nodes + 1, sizeof *graph->by_handle);
    for (uint32_t i = 0; graph->by_handle && i < graph->n_nodes; i++)
        graph->by_handle[i] = i;
    if (graph->by_handle)
        qsort_r(graph->by_handle, graph->n_nodes, sizeof *graph->by_handle, compare_handles, graph->nodes);
    return graph->by_handle != NULL;
}

struct graph_node *graph_find(const struct graph *graph, CUgraphNode handle)
{
    size_t low = 0, high = graph->n_nodes;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        struct graph_node *node = &graph->nodes[graph->by_handle[middle]];
        if (node->handle == handle)
            return node;
        if ((uintptr_t)node->handle < (uintptr_t)handle)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
