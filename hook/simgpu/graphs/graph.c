#include "graph.h"

#include <stdlib.h>
#include <string.h>

static uint64_t last_id;

struct graph *graph_of(CUgraph handle)
{
    return handle_object(HANDLE_GRAPH, handle);
}

struct graph_node *node_of(CUgraphNode handle)
{
    return handle_object(HANDLE_GRAPH_NODE, handle);
}

struct graph *graph_make(void)
{
    struct graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        return NULL;
    graph->id = ++last_id;
    graph->handle = handle_create(HANDLE_GRAPH, graph);
    if (graph->handle)
        return graph;
    free(graph);
    return NULL;
}

static void free_node(struct graph_node *node)
{
    work_free(&node->work);
    if (node->handle)
        handle_destroy(node->handle);
    free(node->before);
    free(node->pointers);
    free(node);
}

void graph_free(struct graph *graph)
{
    if (!graph)
        return;
    for (size_t i = 0; i < graph->n_nodes; i++)
        free_node(graph->nodes[i]);
    handle_destroy(graph->handle);
    free(graph->nodes);
    free(graph);
}

bool node_wait_for(struct graph_node *node, struct graph_node *before)
{
    struct graph_node **more = realloc(node->before, (node->n_before + 1) * sizeof *more);
    if (!more)
        return false;
    node->before = more;
    node->before[node->n_before++] = before;
    return true;
}

static bool append(struct graph *graph, struct graph_node *node)
{
    struct graph_node **more = realloc(graph->nodes, (graph->n_nodes + 1) * sizeof *more);
    if (!more)
        return false;
    graph->nodes = more;
    graph->nodes[graph->n_nodes++] = node;
    return true;
}

CUresult graph_add(struct graph *graph, struct graph_node *const *before, size_t n_before, struct work *work,
                   struct graph_node **added)
{
    struct graph_node *node = calloc(1, sizeof *node);
    if (!node) {
        work_free(work);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    node->graph = graph;
    node->work = *work;
    node->id = ++last_id;
    node->handle = handle_create(HANDLE_GRAPH_NODE, node);
    bool done = node->handle != NULL;
    for (size_t i = 0; i < n_before && done; i++)
        done = node_wait_for(node, before[i]);
    if (!done || !append(graph, node)) {
        free_node(node);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (work->kind->type == NODE_CHILD)
        work->of.child->is_child = true;
    *added = node;
    return CUDA_SUCCESS;
}

static void forget_edge(struct graph_node *node, const struct graph_node *before)
{
    for (size_t i = 0; i < node->n_before; i++)
        if (node->before[i] == before) {
            memmove(node->before + i, node->before + i + 1, (node->n_before - i - 1) * sizeof *node->before);
            node->n_before--;
            return;
        }
}

void node_remove(struct graph_node *node)
{
    struct graph *graph = node->graph;
    size_t n_left = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        forget_edge(graph->nodes[i], node);
        if (graph->nodes[i] != node)
            graph->nodes[n_left++] = graph->nodes[i];
    }
    graph->n_nodes = n_left;
    free_node(node);
}

/* The node at the place in CLONE that NODE has in its own graph. */
static struct graph_node *counterpart(const struct graph *clone, const struct graph_node *node)
{
    size_t i = 0;
    while (node->graph->nodes[i] != node)
        i++;
    return clone->nodes[i];
}

static bool clone_node(struct graph *clone, const struct graph_node *node)
{
    struct graph_node *added;
    struct work work;
    if (!work_copy(&work, &node->work) || graph_add(clone, NULL, 0, &work, &added))
        return false;
    added->origin = node->id;
    added->disabled = node->disabled;
    return true;
}

struct graph *graph_clone(const struct graph *graph)
{
    struct graph *clone = graph_make();
    bool done = clone != NULL;
    for (size_t i = 0; i < graph->n_nodes && done; i++)
        done = clone_node(clone, graph->nodes[i]);
    for (size_t i = 0; i < graph->n_nodes && done; i++)
        for (size_t k = 0; k < graph->nodes[i]->n_before && done; k++)
            done = node_wait_for(clone->nodes[i], counterpart(clone, graph->nodes[i]->before[k]));
    if (!done) {
        graph_free(clone);
        return NULL;
    }
    clone->origin = graph->id;
    return clone;
}

struct graph_node *graph_find_clone(const struct graph *graph, const struct graph_node *node)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct graph_node *here = graph->nodes[i];
        if (here->origin == node->id)
            return here;
        if (here->work.kind->type == NODE_CHILD && (here = graph_find_clone(here->work.of.child, node)))
            return here;
    }
    return NULL;
}

bool graph_has_memory(const struct graph *graph)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct work *work = &graph->nodes[i]->work;
        if (work->kind->type == NODE_MEMORY || work->kind->type == NODE_MEMORY_FREE ||
            (work->kind->type == NODE_CHILD && graph_has_memory(work->of.child)))
            return true;
    }
    return false;
}
