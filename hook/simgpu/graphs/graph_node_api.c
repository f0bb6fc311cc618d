/* Nodes of graphs as programs add them. */

#include <stdlib.h>
#include <string.h>

#include "current.h"
#include "graph_run.h"
#include "launch.h"
#include "work_kinds.h"

enum { MOST_NODES = 1 << 20 };

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

API cuGraphAddKernelNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n,
                         const CUkernelNode *parameters)
{
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    const CUkernelNode node = kernel_node_upgraded(parameters);
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
    return add_plain(handle, graph, before, n, (struct work){.kind = &copy_work, .of.copy = *copy});
}

API cuGraphAddMemsetNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n,
                         const CUfillNode *fill, CUcontext context)
{
    (void)context;
    return add_plain(handle, graph, before, n, (struct work){.kind = &fill_work, .of.fill = *fill});
}

API cuGraphAddHostNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n, const CUhostNode *host)
{
    return add_plain(handle, graph, before, n, (struct work){.kind = &host_work, .of.host = *host});
}

API cuGraphAddEmptyNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n)
{
    return add_plain(handle, graph, before, n, (struct work){.kind = &empty_work});
}

API cuGraphAddEventRecordNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n, CUevent event)
{
    return add_plain(handle, graph, before, n, (struct work){.kind = &event_record_work, .of.event = event});
}

API cuGraphAddEventWaitNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n, CUevent event)
{
    return add_plain(handle, graph, before, n, (struct work){.kind = &event_wait_work, .of.event = event});
}

/* The graph of a child node is a copy of the one that is given. */
API cuGraphAddChildGraphNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n, CUgraph child)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    const struct graph *original = graph_of(child);
    struct work work = {.kind = &child_work, .of.child = original ? graph_clone(original) : NULL};
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
    struct work work = {.kind = &memory_work, .of.memory = block->address};
    parameters->address = block->address;
    return leave(add(handle, graph, before, n, &work));
}

/* And stays there: a replay that frees it may be followed by another. */
API cuGraphAddMemFreeNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *before, size_t n, CUdeviceptr address)
{
    return add_plain(handle, graph, before, n, (struct work){.kind = &memory_free_work, .of.memory = address});
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
