/* Graphs: nodes with what they do, and what they wait for. The caller holds the driver's lock in all of these. */
#ifndef TUI_PROBE_SIMGPU_GRAPH_H
#define TUI_PROBE_SIMGPU_GRAPH_H

#include "work.h"

struct graph_node {
    CUgraphNode handle;
    struct graph *graph;
    struct work work;
    struct graph_node **before; /* what it waits for */
    size_t n_before;
    uint64_t id, origin; /* unique in the process; of the node that this is a clone of, or 0 */
    bool disabled;       /* in an executable */
    void **pointers;     /* to a kernel's parameters, once they were asked for */
};

struct graph {
    CUgraph handle;
    bool is_child; /* it belongs to a node */
    struct graph_node **nodes; /* each after those that it waits for, unless an edge was added later */
    size_t n_nodes;
    uint64_t origin; /* the graph's that this is a clone of, or 0 */
    uint64_t id;
    bool instantiated;
};

/* NULL: out of memory. */
struct graph *graph_make(void);
struct graph *graph_clone(const struct graph *graph);
void graph_free(struct graph *graph);

struct graph *graph_of(CUgraph handle);
struct graph_node *node_of(CUgraphNode handle);

/* Takes over WORK, no matter what comes of it. The nodes that it waits for must be of the graph. */
CUresult graph_add(struct graph *graph, struct graph_node *const *before, size_t n_before, struct work *work,
                   struct graph_node **added);

bool node_wait_for(struct graph_node *node, struct graph_node *before);
void node_remove(struct graph_node *node);

/* The node that was cloned from NODE, child graphs included; NULL if there is none. */
struct graph_node *graph_find_clone(const struct graph *graph, const struct graph_node *node);

/* True if some node, child graphs included, allocates memory. */
bool graph_has_memory(const struct graph *graph);

#endif
