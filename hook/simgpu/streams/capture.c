#include "capture.h"

#include <stdlib.h>

#include "events.h"
#include "graph.h"
#include "streams.h"

struct capture *capture_of(CUstream stream)
{
    const struct capture_point *point = stream_capture(stream);
    return point ? point->capture : NULL;
}

CUresult capture_break(struct capture_point *point)
{
    point->capture->broken = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult capture_work(CUstream stream, struct work *work)
{
    struct capture_point *point = stream_capture(stream);
    struct graph_node *node;
    if (point->capture->broken) {
        work_free(work);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    CUresult result = graph_add(point->capture->graph, point->nodes, point->n, work, &node);
    if (result)
        return result;
    point->n = 0;
    return capture_point_add(point, node) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult capture_begin(CUstream stream, struct graph *graph, const CUgraphNode *nodes, size_t n, int mode)
{
    static uint64_t last_id;
    struct capture_point *point = stream_capture(stream);
    if (!point)
        return stream_exists(stream) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_ERROR_INVALID_HANDLE;
    if (point->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (mode < 0 || mode > 2)
        return CUDA_ERROR_INVALID_VALUE;
    struct capture *capture = calloc(1, sizeof *capture);
    if (!capture)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *capture = (struct capture){.graph = graph ? graph : graph_make(), .origin = point, .id = ++last_id};
    capture->to_graph = graph != NULL;
    point->capture = capture;
    for (size_t i = 0; i < n; i++)
        if (!node_of(nodes[i]) || !capture_point_add(point, node_of(nodes[i])))
            capture->broken = true;
    return CUDA_SUCCESS;
}

static bool waits_for(const struct graph_node *node, const struct graph_node *wanted)
{
    for (size_t i = 0; i < node->n_before; i++)
        if (node->before[i] == wanted || waits_for(node->before[i], wanted))
            return true;
    return node == wanted;
}

/* True if all that other streams did has been joined by the origin. */
static bool is_joined(struct capture_point *point, const void *argument)
{
    const struct capture *capture = argument;
    bool all = true;
    for (size_t i = 0; i < point->n && point->capture == capture; i++) {
        bool joined = false;
        for (size_t k = 0; k < capture->origin->n; k++)
            joined = joined || waits_for(capture->origin->nodes[k], point->nodes[i]);
        all = all && joined;
    }
    return all;
}

static bool let_go(struct capture_point *point, const void *capture)
{
    if (point->capture == capture)
        capture_point_clear(point);
    return true;
}

CUresult capture_end(CUstream stream, CUgraph *handle)
{
    struct capture_point *point = stream_capture(stream);
    struct capture *capture = point ? point->capture : NULL;
    if (!capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != point)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    CUresult result = capture->broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    if (!result && !streams_each_capture(is_joined, capture))
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    streams_each_capture(let_go, capture);
    events_each_capture(let_go, capture);
    *handle = result ? NULL : capture->graph->handle;
    if (result && !capture->to_graph)
        graph_free(capture->graph);
    free(capture);
    return result;
}
