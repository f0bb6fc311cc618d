#include "graph.h"

#include <stdlib.h>
#include <string.h>

#include "graph_captured.h"
#include "kernels.h"
#include "real.h"
#include "reasons.h"
#include "registry.h"
#include "schedule.h"

enum { MOST_DEPTH = 16 };

const char *graph_type_name(enum graph_node_type type)
{
    static const char *const names[] = {"kernel",       "copy",        "fill",         "host",       "child",
                                        "empty",        "event-wait",  "event-record", "signal",     "wait",
                                        "memory-alloc", "memory-free", "batch-memory", "conditional"};
    return (unsigned)type < sizeof names / sizeof *names ? names[type] : "other";
}

CUresult graph_kernel_parameters(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *parameters)
{
    memset(parameters, 0, sizeof *parameters);
    if (real()->cuGraphKernelNodeGetParams_v2)
        return real()->cuGraphKernelNodeGetParams_v2(node, parameters);
    return REAL_OR_NOT_FOUND(cuGraphKernelNodeGetParams, node, parameters);
}

bool graph_node_set_kernel(struct graph_node *node, const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    CUfunction function = parameters->func ? parameters->func : (CUfunction)(void *)parameters->kern;
    struct launch *launch = &node->launch;
    launch->function = function;
    memcpy(launch->grid, parameters->grid, sizeof launch->grid);
    memcpy(launch->block, parameters->block, sizeof launch->block);
    launch->shared = parameters->sharedMemBytes;
    const struct instance *instance = registry_instance(function);
    node->kernel = instance ? atomic_load_explicit(&instance->kernel, memory_order_relaxed) : NULL;
    node->group = node->kernel ? schedule_group(node->kernel, launch) : NULL;
    if (!node->group)
        return false;
    launch->group = node->group;
    kernels_number(node->kernel);
    if (atomic_load_explicit(&node->kernel->status, memory_order_relaxed) == KERNEL_NEW)
        atomic_store_explicit(&node->kernel->unprepared, reason(GRAPH_NOT_PROBED), memory_order_release);
    return true;
}

/* The attributes that decide whether all blocks must be resident, as a launch would have them. */
static void read_attributes(struct graph_node *node)
{
    static const uint32_t ids[] = {CU_LAUNCH_ATTRIBUTE_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        CUlaunchAttribute attribute = {.id = ids[i]};
        if (REAL_OR_NOT_FOUND(cuGraphKernelNodeGetAttribute, node->handle, (int)ids[i], &attribute.value) ==
                CUDA_SUCCESS &&
            attribute.value.cluster[0])
            node->attributes[node->config.numAttrs++] = attribute;
    }
    if (!node->config.numAttrs)
        return;
    node->config.attrs = node->attributes;
    node->launch.form = LAUNCH_EX;
    node->launch.config = &node->config;
}

static bool read_kernel(struct graph_node *node)
{
    CUDA_KERNEL_NODE_PARAMS parameters;
    if (graph_kernel_parameters(node->handle, &parameters) != CUDA_SUCCESS)
        return false;
    read_attributes(node);
    if (!graph_node_set_kernel(node, &parameters))
        return false;
    node->captured = graph_captured_number(node->handle, node->kernel);
    return true;
}

static void read_bytes(struct graph_node *node)
{
    CUDA_MEMCPY3D copy;
    CUDA_MEMSET_NODE_PARAMS fill;
    if (node->type == CU_GRAPH_NODE_MEMCPY &&
        REAL_OR_NOT_FOUND(cuGraphMemcpyNodeGetParams, node->handle, &copy) == CUDA_SUCCESS)
        node->bytes = (uint64_t)copy.width * copy.height * copy.depth;
    if (node->type == CU_GRAPH_NODE_MEMSET &&
        REAL_OR_NOT_FOUND(cuGraphMemsetNodeGetParams, node->handle, &fill) == CUDA_SUCCESS)
        node->bytes = (uint64_t)fill.width * fill.height * fill.elementSize;
}

static bool add_node(struct graph *graph, CUgraphNode handle, uint32_t parent)
{
    struct graph_node *nodes = realloc(graph->nodes, (graph->n_nodes + 1) * sizeof *nodes);
    int type;
    if (!nodes || REAL_OR_NOT_FOUND(cuGraphNodeGetType, handle, &type) != CUDA_SUCCESS) {
        graph->nodes = nodes ? nodes : graph->nodes;
        return false;
    }
    graph->nodes = nodes;
    graph->nodes[graph->n_nodes++] = (struct graph_node){.handle = handle,
                                                         .type = (enum graph_node_type)type,
                                                         .parent = parent,
                                                         .captured = GRAPH_NOT_CAPTURED};
    return true;
}

CUgraphNode *graph_handles(CUgraph handle, size_t *n)
{
    *n = 0;
    if (REAL_OR_NOT_FOUND(cuGraphGetNodes, handle, NULL, n) != CUDA_SUCCESS)
        return NULL;
    CUgraphNode *handles = calloc(*n + 1, sizeof(CUgraphNode));
    if (handles && *n && REAL_OR_NOT_FOUND(cuGraphGetNodes, handle, handles, n) != CUDA_SUCCESS) {
        free(handles);
        return NULL;
    }
    return handles;
}

static bool add_graph(struct graph *graph, CUgraph handle, uint32_t parent, int depth);

static bool add_child(struct graph *graph, uint32_t index, int depth)
{
    CUgraph child;
    return depth < MOST_DEPTH &&
           REAL_OR_NOT_FOUND(cuGraphChildGraphNodeGetGraph, graph->nodes[index].handle, &child) == CUDA_SUCCESS &&
           add_graph(graph, child, index, depth + 1);
}

/* A child graph's nodes come right behind its own. */
static bool add_graph(struct graph *graph, CUgraph handle, uint32_t parent, int depth)
{
    size_t n;
    CUgraphNode *handles = graph_handles(handle, &n);
    bool done = handles != NULL;
    for (size_t i = 0; i < n && done; i++) {
        done = add_node(graph, handles[i], parent);
        const uint32_t index = (uint32_t)graph->n_nodes - 1;
        if (done && graph->nodes[index].type == CU_GRAPH_NODE_GRAPH)
            done = add_child(graph, index, depth);
    }
    free(handles);
    return done;
}

static bool read_nodes(struct graph *graph)
{
    graph->kernels = calloc(graph->n_nodes + 1, sizeof *graph->kernels);
    for (uint32_t i = 0; graph->kernels && i < graph->n_nodes; i++) {
        struct graph_node *node = &graph->nodes[i];
        read_bytes(node);
        if (node->type != CU_GRAPH_NODE_KERNEL)
            continue;
        if (!read_kernel(node))
            return false;
        graph->kernels[graph->n_kernels++] = i;
    }
    return graph->kernels != NULL;
}

struct graph *graph_read(CUgraph handle)
{
    struct graph *graph = calloc(1, sizeof *graph);
    if (graph && add_graph(graph, handle, GRAPH_TOP, 0) && graph_sort(graph) && graph_read_edges(graph, handle) &&
        read_nodes(graph))
        return graph;
    graph_free(graph);
    return NULL;
}

void graph_free(struct graph *graph)
{
    for (size_t i = 0; graph && i < graph->n_nodes; i++)
        free(graph->nodes[i].before);
    if (graph) {
        free(graph->nodes);
        free(graph->kernels);
        free(graph->by_handle);
    }
    free(graph);
}
