#include "graph_run.h"

#include <stdlib.h>

static bool is_among(const struct graph_node *node, struct graph_node *const *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (nodes[i] == node)
            return true;
    return false;
}

static bool is_ready(const struct graph_node *node, struct graph_node *const *done, size_t n)
{
    for (size_t i = 0; i < node->n_before; i++)
        if (!is_among(node->before[i], done, n))
            return false;
    return true;
}

struct graph_node **graph_order(const struct graph *graph)
{
    struct graph_node **order = calloc(graph->n_nodes + 1, sizeof *order);
    for (size_t n = 0; order && n < graph->n_nodes;) {
        const size_t before = n;
        for (size_t i = 0; i < graph->n_nodes; i++)
            if (!is_among(graph->nodes[i], order, n) && is_ready(graph->nodes[i], order, n))
                order[n++] = graph->nodes[i];
        if (n == before) { /* a circle */
            free(order);
            return NULL;
        }
    }
    return order;
}

CUresult graph_run(const struct graph *graph)
{
    struct graph_node **order = graph_order(graph);
    CUresult result = order ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < graph->n_nodes && !result; i++)
        result = order[i]->disabled ? CUDA_SUCCESS : work_run(&order[i]->work);
    free(order);
    return result;
}

static CUresult run_child(const struct work *work)
{
    return graph_run(work->of.child);
}

static bool own_child(struct work *work)
{
    return (work->of.child = graph_clone(work->of.child)) != NULL;
}

static void free_child(struct work *work)
{
    graph_free(work->of.child);
}

const struct work_kind child_work = {.type = NODE_CHILD, .run = run_child, .own = own_child, .release = free_child};
