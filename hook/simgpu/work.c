#include "work.h"

#include <stdlib.h>
#include <string.h>

#include "copy.h"
#include "graph.h"
#include "launch.h"

CUkernelNode kernel_node_upgraded(const CUkernelNode *older)
{
    CUkernelNode node = {0};
    memcpy(&node, older, offsetof(CUkernelNode, kernel));
    return node;
}

CUresult work_of_kernel(struct work *work, const CUkernelNode *node, bool cooperative)
{
    struct launch launch = {.function = node->function ? node->function : node->kernel,
                            .dynamic_shared_bytes = node->shared_bytes,
                            .cooperative = cooperative,
                            .parameters = node->parameters,
                            .extra = node->extra};
    memcpy(launch.grid, node->grid, sizeof launch.grid);
    memcpy(launch.block, node->block, sizeof launch.block);
    work->type = NODE_KERNEL;
    return launch_pack(&launch, &work->of.kernel);
}

struct work work_of_copy(CUdeviceptr target, CUdeviceptr source, size_t bytes)
{
    return (struct work){.type = NODE_COPY,
                         .of.copy = {.source_type = MEMORY_UNIFIED,
                                     .source_device = source,
                                     .target_type = MEMORY_UNIFIED,
                                     .target_device = target,
                                     .width = bytes,
                                     .height = 1,
                                     .depth = 1}};
}

bool work_copy(struct work *to, const struct work *from)
{
    *to = *from;
    if (from->type == NODE_CHILD)
        return (to->of.child = graph_clone(from->of.child)) != NULL;
    if (from->type != NODE_KERNEL)
        return true;
    to->of.kernel.packed = malloc(from->of.kernel.packed_bytes + 1);
    if (to->of.kernel.packed)
        memcpy(to->of.kernel.packed, from->of.kernel.packed, from->of.kernel.packed_bytes);
    return to->of.kernel.packed != NULL;
}

void work_free(struct work *work)
{
    if (work->type == NODE_CHILD)
        graph_free(work->of.child);
    else if (work->type == NODE_KERNEL)
        free(work->of.kernel.packed);
}

static CUresult fill_run(const CUfillNode *fill)
{
    return fill_rows(fill->address, fill->pitch, fill->value, fill->value_bytes, fill->width, fill->height);
}

CUresult work_run(const struct work *work)
{
    switch (work->type) {
    case NODE_KERNEL:
        return launch_run(&work->of.kernel);
    case NODE_COPY:
        return copy_boxes(&work->of.copy);
    case NODE_FILL:
        return fill_run(&work->of.fill);
    case NODE_HOST:
        work->of.host.function(work->of.host.data);
        return CUDA_SUCCESS;
    case NODE_EVENT_RECORD:
        return event_record(work->of.event);
    default:
        return CUDA_SUCCESS; /* everything runs in order: there is nothing to wait for */
    }
}
