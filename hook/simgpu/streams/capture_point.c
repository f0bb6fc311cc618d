#include "capture_point.h"

#include <stdlib.h>

void capture_point_clear(struct capture_point *point)
{
    free(point->nodes);
    free(point->handles);
    *point = (struct capture_point){0};
}

bool capture_point_add(struct capture_point *point, struct graph_node *node)
{
    for (size_t i = 0; i < point->n; i++)
        if (point->nodes[i] == node)
            return true;
    struct graph_node **more = realloc(point->nodes, (point->n + 1) * sizeof *more);
    if (!more)
        return false;
    point->nodes = more;
    point->nodes[point->n++] = node;
    return true;
}

CUresult capture_point_join(struct capture_point *to, const struct capture_point *from)
{
    if (to->capture && from->capture && to->capture != from->capture)
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    if (from->capture)
        to->capture = from->capture;
    for (size_t i = 0; i < from->n; i++)
        if (!capture_point_add(to, from->nodes[i]))
            return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

CUresult capture_point_set(struct capture_point *to, const struct capture_point *from)
{
    capture_point_clear(to);
    return capture_point_join(to, from);
}
