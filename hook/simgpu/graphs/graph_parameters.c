/* Parameters of graph nodes, as programs set and read them. */

#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "launch.h"
#include "module.h"

enum { ATTRIBUTE_BYTES = 64 };

/* Locks the driver and finds a node of a type. Fails, without the lock, for anything else. */
static CUresult enter_typed(CUgraphNode handle, enum node_type type, struct graph_node **node)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    *node = node_of(handle);
    return *node && (*node)->work.kind->type == type ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_VALUE);
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
    CUkernelNode answer = {.function = kernel->function_handle,
                           .shared_bytes = call->shared_bytes,
                           .parameters = node->pointers};
    memcpy(answer.grid, call->grid, sizeof answer.grid);
    memcpy(answer.block, call->block, sizeof answer.block);
    memcpy(parameters, &answer, size);
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
    memcpy(work.of.kernel.cluster, node->work.of.kernel.cluster, sizeof work.of.kernel.cluster);
    work_free(&node->work);
    node->work = work;
    return leave(CUDA_SUCCESS);
}

API cuGraphKernelNodeSetParams(CUgraphNode handle, const CUkernelNode *parameters)
{
    const CUkernelNode node = kernel_node_upgraded(parameters);
    return cuGraphKernelNodeSetParams_v2(handle, &node);
}

/* Attributes other than of cooperation and clusters change nothing here. */
API cuGraphKernelNodeSetAttribute(CUgraphNode handle, int attribute, const int *value)
{
    struct graph_node *node;
    CUresult result = enter_typed(handle, NODE_KERNEL, &node);
    if (result)
        return result;
    if (attribute == LAUNCH_ATTRIBUTE_COOPERATIVE)
        node->work.of.kernel.cooperative = *value != 0;
    if (attribute == LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
        memcpy(node->work.of.kernel.cluster, value, sizeof node->work.of.kernel.cluster);
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
    if (attribute == LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
        memcpy(value, node->work.of.kernel.cluster, sizeof node->work.of.kernel.cluster);
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
