/* The contents of a graph, as it was when an executable was made of it: read once, so that nothing is asked when it is
 * replayed, nor of a graph that the program has destroyed. */
#ifndef TUI_PROBE_GRAPH_H
#define TUI_PROBE_GRAPH_H

#include "launch.h"

enum { GRAPH_TOP = UINT32_MAX };

struct graph_node {
    CUgraphNode handle; /* the program's */
    CUgraphNode probed_copy; /* the clone's; NULL: there is none */
    enum graph_node_type type;
    uint32_t parent; /* the child graph's node that it is in, by index; GRAPH_TOP: none */
    uint32_t *before, n_before; /* those that it waits for, by index */
    uint64_t bytes; /* of a copy or a fill; 0: not known */

    /* Of a kernel. */
    struct kernel *kernel;
    struct shape_group *group;
    struct launch launch; /* its shape; the parameters are the clone's, and the instance is looked up for each replay */
    CUlaunchConfig config;
    CUlaunchAttribute attributes[2];
    int64_t captured; /* the launch that it was captured from, by number; GRAPH_NOT_CAPTURED */
    const struct reason *refused; /* why the probed copy cannot have it probed; NULL */
    bool disabled; /* by the program, in its executable */
    bool stale; /* in the probed copy not as in the clone: probed for an earlier replay, or changed since */
    bool taken; /* it is probed in the replay that is being made */
    bool recorded; /* in some replay */
};

struct graph {
    struct graph_node *nodes;
    size_t n_nodes;
    uint32_t *kernels; /* nodes of kernels, in the order of nodes */
    size_t n_kernels;
    uint32_t *by_handle; /* all nodes, sorted by the program's handles */
    bool programmatic; /* some edge lets a kernel begin before the one it waits for is over */
};

/* Reads a graph with its child graphs. NULL if the driver does not say, or without memory. */
struct graph *graph_read(CUgraph handle);
void graph_free(struct graph *graph);

/* Sorts the nodes for graph_find; false without memory. */
bool graph_sort(struct graph *graph);

/* The node of one of the program's handles, or NULL. */
struct graph_node *graph_find(const struct graph *graph, CUgraphNode handle);

/* Notes for each node which ones it waits for; false if the driver does not say, or without memory. */
bool graph_read_edges(struct graph *graph, CUgraph handle);

/* Finds every node in CLONE; false if one is not there. */
bool graph_match(struct graph *graph, CUgraph clone);

/* Sets the launch of a kernel's node from now on; false without memory. */
bool graph_node_set_kernel(struct graph_node *node, const CUDA_KERNEL_NODE_PARAMS *parameters);

/* The handles of the N nodes of one graph, without those in child graphs; to be freed. NULL if the driver does
 * not say. */
CUgraphNode *graph_handles(CUgraph handle, size_t *n);

/* By whichever form of the function the driver has. */
CUresult graph_kernel_parameters(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *parameters);

const char *graph_type_name(enum graph_node_type type);

#endif
