/* Nodes of graphs: what they do, as programs set it and ask for it. */

#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "module.h"

enum { ATTRIBUTE_BYTES = 64, MOST_NODES = 1 << 20 };

/* Takes over WORK. */
static CUresult add(CUgraphNode *handle, CUgraph graph_handle, const CUgraphNode *before, size_t n, struct work *work)
{
    struct graph *graph = graph_of(graph_handle);
    struct graph_node *node = NULL;
    bool fits = graph && handle && n < MOST_NODES && (!n || before);
    struct graph_node **nodes = fits ? calloc(n + 1, sizeof *nodes) : NULL;
    for (size_t i = 0; i < n && nodes; i++)
        fits = (nodes[i] = node_of(before[i])) && nodes[i]->graph == graph && fits;
    if (!fits || !nodes) {
        work_free(work);
        free(nodes);
        return fits ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = graph_add(graph, nodes, n, work, &node);
    free(nodes);
    if (!result)
        *handle = node->handle;
    return result;
}

static CUresult add_kernel(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n,
                           const CUkernelNode *parameters)
{
    struct context *context;
    struct work work;
    CUresult result = enter(&context);
    if (result)
        return result;
    result = work_of_kernel(&work, parameters, false);
    return leave(result ? result : add(handle, graph, before, n, &work));
}

API cuGraphAddKernelNode_v2(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n,
                            const CUkernelNode *parameters)
{
    return parameters ? add_kernel(handle, graph, before, n, parameters) : CUDA_ERROR_INVALID_VALUE;
}

/* What a program of the older interface means. */
static CUkernelNode upgraded(const CUkernelNode *older)
{
    CUkernelNode node = {0};
    memcpy(&node, older, offsetof(CUkernelNode, kernel));
    return node;
}

API cuGraphAddKernelNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n,
                         const CUkernelNode *parameters)
{
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    const CUkernelNode node = upgraded(parameters);
    return add_kernel(handle, graph, before, n, &node);
}

static CUresult add_plain(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n, struct work work)
{
    CUresult result = enter_driver();
    return result ? result : leave(add(handle, graph, before, n, &work));
}

API cuGraphAddMemcpyNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n,
                         const CUmemcpy3D *copy, CUcontext context)
{
    (void)context;
    return add_plain(handle, graph, before, n, (struct work){.type = NODE_COPY, .of.copy = *copy});
}

API cuGraphAddMemsetNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n,
                         const CUfillNode *fill, CUcontext context)
{
    (void)context;
    return add_plain(handle, graph, before, n, (struct work){.type = NODE_FILL, .of.fill = *fill});
}

API cuGraphAddHostNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n, const CUhostNode *host)
{
    return add_plain(handle, graph, before, n, (struct work){.type = NODE_HOST, .of.host = *host});
}

API cuGraphAddEmptyNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n)
{
    return add_plain(handle, graph, before, n, (struct work){.type = NODE_EMPTY});
}

API cuGraphAddEventRecordNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n, CUevent event)
{
    return add_plain(handle, graph, before, n, (struct work){.type = NODE_EVENT_RECORD, .of.event = event});
}

API cuGraphAddEventWaitNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n, CUevent event)
{
    return add_plain(handle, graph, before, n, (struct work){.type = NODE_EVENT_WAIT, .of.event = event});
}

/* The graph of a child node is a copy of the one that is given. */
API cuGraphAddChildGraphNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n, CUgraph child)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    const struct graph *original = graph_of(child);
    struct work work = {.type = NODE_CHILD, .of.child = original ? graph_clone(original) : NULL};
    if (!work.of.child)
        return leave(original ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE);
    return leave(add(handle, graph, before, n, &work));
}

/* The memory is there from now on. */
API cuGraphAddMemAllocNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n,
                           CUmemoryNode *parameters)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    const struct block *block = heap_allocate(&driver.device_heap, parameters->bytes, BLOCK_DEVICE, context);
    if (!block)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    struct work work = {.type = NODE_MEMORY, .of.memory = block->address};
    parameters->address = block->address;
    return leave(add(handle, graph, before, n, &work));
}

/* And stays there: a replay that frees it may be followed by another. */
API cuGraphAddMemFreeNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n, CUdeviceptr address)
{
    return add_plain(handle, graph, before, n, (struct work){.type = NODE_MEMORY_FREE, .of.memory = address});
}

API cuGraphAddNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n, CUanyNode *any)
{
    if (!any)
        return CUDA_ERROR_INVALID_VALUE;
    switch (any->type) {
    case NODE_KERNEL:
        return cuGraphAddKernelNode_v2(handle, graph, before, n, &any->of.kernel);
    case NODE_COPY:
        return cuGraphAddMemcpyNode(handle, graph, before, n, &any->of.copy.copy, NULL);
    case NODE_FILL:
        return cuGraphAddMemsetNode(handle, graph, before, n, &any->of.fill, NULL);
    case NODE_HOST:
        return cuGraphAddHostNode(handle, graph, before, n, &any->of.host);
    case NODE_CHILD:
        return cuGraphAddChildGraphNode(handle, graph, before, n, any->of.child);
    case NODE_EMPTY:
        return cuGraphAddEmptyNode(handle, graph, before, n);
    case NODE_EVENT_RECORD:
        return cuGraphAddEventRecordNode(handle, graph, before, n, any->of.event);
    case NODE_EVENT_WAIT:
        return cuGraphAddEventWaitNode(handle, graph, before, n, any->of.event);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

API cuGraphAddNode_v2(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, const void *edges, size_t n,
                      CUanyNode *any)
{
    (void)edges;
    return cuGraphAddNode(handle, graph, before, n, any);
}

/* Locks the driver and finds a node of a type. Fails, without the lock, for anything else. */
static CUresult enter_typed(CUgraphNode handle, enum node_type type, struct graph_node **node)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    *node = node_of(handle);
    return *node && (*node)->work.type == type ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_VALUE);
}

/* Pointers into the node's own copy, as the real driver gives them. */
static CUresult point_at_parameters(struct graph_node *node, const struct kernel *kernel)
{
    free(node->pointers);
    node->pointers = calloc(kernel->parameter_count + 1, sizeof *node->pointers);
    if (!node->pointers)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < kernel->parameter_count; i++)
        node->pointers[i] = node->work.of.kernel.packed + kernel->parameters[i].offset;
    return CUDA_SUCCESS;
}

static CUresult get_kernel(CUgraphNode handle, CUkernelNode *parameters, size_t size)
{
    struct graph_node *node;
    CUresult result = enter_typed(handle, NODE_KERNEL, &node);
    if (result)
        return result;
    const struct kernel_call *call = &node->work.of.kernel;
    const struct kernel *kernel = kernel_of(call->function);
    result = kernel ? point_at_parameters(node, kernel) : CUDA_ERROR_INVALID_HANDLE;
    if (result)
        return leave(result);
    /* By the function, also of a kernel that was launched by its handle as a library's. */
    CUkernelNode told = {.function = kernel->function_handle,
                         .shared_bytes = call->shared_bytes,
                         .parameters = node->pointers};
    memcpy(told.grid, call->grid, sizeof told.grid);
    memcpy(told.block, call->block, sizeof told.block);
    memcpy(parameters, &told, size);
    return leave(CUDA_SUCCESS);
}

API cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUkernelNode *parameters)
{
    return get_kernel(handle, parameters, sizeof *parameters);
}

API cuGraphKernelNodeGetParams(CUgraphNode handle, CUkernelNode *parameters)
{
    return get_kernel(handle, parameters, offsetof(CUkernelNode, kernel));
}

API cuGraphKernelNodeSetParams_v2(CUgraphNode handle, const CUkernelNode *parameters)
{
    struct graph_node *node;
    struct work work;
    CUresult result = enter_typed(handle, NODE_KERNEL, &node);
    if (result)
        return result;
    result = work_of_kernel(&work, parameters, node->work.of.kernel.cooperative);
    if (result)
        return leave(result);
    work_free(&node->work);
    node->work = work;
    return leave(CUDA_SUCCESS);
}

API cuGraphKernelNodeSetParams(CUgraphNode handle, const CUkernelNode *parameters)
{
    const CUkernelNode node = upgraded(parameters);
    return cuGraphKernelNodeSetParams_v2(handle, &node);
}

/* Attributes other than of cooperation change nothing here. */
API cuGraphKernelNodeSetAttribute(CUgraphNode handle, int attribute, const int *value)
{
    struct graph_node *node;
    CUresult result = enter_typed(handle, NODE_KERNEL, &node);
    if (result)
        return result;
    if (attribute == LAUNCH_ATTRIBUTE_COOPERATIVE)
        node->work.of.kernel.cooperative = *value != 0;
    return leave(CUDA_SUCCESS);
}

API cuGraphKernelNodeGetAttribute(CUgraphNode handle, int attribute, int *value)
{
    struct graph_node *node;
    CUresult result = enter_typed(handle, NODE_KERNEL, &node);
    if (result)
        return result;
    memset(value, 0, ATTRIBUTE_BYTES);
    if (attribute == LAUNCH_ATTRIBUTE_COOPERATIVE)
        *value = node->work.of.kernel.cooperative;
    return leave(CUDA_SUCCESS);
}

/* The two functions of a type of node whose parameters are copied as they are. */
#define NODE_PARAMETERS(name, node_type, type, member)                           \
    API cuGraph##name##NodeGetParams(CUgraphNode handle, type *parameters)       \
    {                                                                            \
        struct graph_node *node;                                                 \
        CUresult result = enter_typed(handle, node_type, &node);                 \
        if (result)                                                              \
            return result;                                                       \
        *parameters = node->work.of.member;                                      \
        return leave(CUDA_SUCCESS);                                              \
    }                                                                            \
    API cuGraph##name##NodeSetParams(CUgraphNode handle, const type *parameters) \
    {                                                                            \
        struct graph_node *node;                                                 \
        CUresult result = enter_typed(handle, node_type, &node);                 \
        if (result)                                                              \
            return result;                                                       \
        node->work.of.member = *parameters;                                      \
        return leave(CUDA_SUCCESS);                                              \
    }

NODE_PARAMETERS(Memcpy, NODE_COPY, CUmemcpy3D, copy)
NODE_PARAMETERS(Memset, NODE_FILL, CUfillNode, fill)
NODE_PARAMETERS(Host, NODE_HOST, CUhostNode, host)
