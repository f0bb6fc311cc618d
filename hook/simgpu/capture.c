#include "capture.h"

#include <stdlib.h>

#include "event.h"
#include "stream.h"

enum { STATUS_NONE, STATUS_ACTIVE, STATUS_BROKEN };

struct capture {
    struct graph *graph;
    struct capture_point *origin; /* the stream's that it began in */
    uint64_t id;
    bool broken, to_graph;
};

struct capture *capture_of(CUstream stream)
{
    const struct capture_point *point = stream_capture(stream);
    return point ? point->capture : NULL;
}

void capture_point_clear(struct capture_point *point)
{
    free(point->nodes);
    free(point->handles);
    *point = (struct capture_point){0};
}

static bool point_add(struct capture_point *point, struct graph_node *node)
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
        if (!point_add(to, from->nodes[i]))
            return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

CUresult capture_point_set(struct capture_point *to, const struct capture_point *from)
{
    capture_point_clear(to);
    return capture_point_join(to, from);
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
    return point_add(point, node) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult begin(CUstream stream, struct graph *graph, const CUgraphNode *nodes, size_t n, int mode)
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
        if (!node_of(nodes[i]) || !point_add(point, node_of(nodes[i])))
            capture->broken = true;
    return CUDA_SUCCESS;
}

API cuStreamBeginCapture_v2(CUstream stream, int mode)
{
    CUresult result = enter_driver();
    return result ? result : leave(begin(stream, NULL, NULL, 0, mode));
}
PER_THREAD_STREAM(cuStreamBeginCapture_v2);

API cuStreamBeginCapture(CUstream stream)
{
    return cuStreamBeginCapture_v2(stream, 0);
}
PER_THREAD_STREAM(cuStreamBeginCapture);

API cuStreamBeginCaptureToGraph(CUstream stream, CUgraph handle, const CUgraphNode *nodes, const void *edges, size_t n,
                                int mode)
{
    (void)edges;
    CUresult result = enter_driver();
    if (result)
        return result;
    struct graph *graph = graph_of(handle);
    return leave(graph ? begin(stream, graph, nodes, n, mode) : CUDA_ERROR_INVALID_VALUE);
}
PER_THREAD_STREAM(cuStreamBeginCaptureToGraph);

static bool waits_for(const struct graph_node *node, const struct graph_node *wanted)
{
    for (size_t i = 0; i < node->n_before; i++)
        if (node->before[i] == wanted || waits_for(node->before[i], wanted))
            return true;
    return node == wanted;
}

/* Whether all that other streams did has been joined by the origin. */
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

static CUresult end(CUstream stream, CUgraph *handle)
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

API cuStreamEndCapture(CUstream stream, CUgraph *handle)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    return leave(handle ? end(stream, handle) : CUDA_ERROR_INVALID_VALUE);
}
PER_THREAD_STREAM(cuStreamEndCapture);

struct capture_info {
    int status;
    uint64_t id;
    CUgraph graph;
    const CUgraphNode *nodes;
    size_t n;
};

/* The handles of the nodes that come next are in an array of the stream's, good until the next call for it. */
static CUresult info(CUstream stream, struct capture_info *info)
{
    CUresult result = enter_driver();
    *info = (struct capture_info){0};
    if (result)
        return result;
    if (!stream_exists(stream))
        return leave(CUDA_ERROR_INVALID_HANDLE);
    struct capture_point *point = stream_capture(stream);
    if (!point || !point->capture)
        return leave(CUDA_SUCCESS);
    free(point->handles);
    CUgraphNode *handles = point->handles = calloc(point->n + 1, sizeof *handles);
    if (!handles)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    for (size_t i = 0; i < point->n; i++)
        handles[i] = point->nodes[i]->handle;
    *info = (struct capture_info){point->capture->broken ? STATUS_BROKEN : STATUS_ACTIVE, point->capture->id,
                                  point->capture->graph->handle, handles, point->n};
    return leave(CUDA_SUCCESS);
}

API cuStreamIsCapturing(CUstream stream, int *status)
{
    struct capture_info found;
    CUresult result = info(stream, &found);
    if (!result && !status)
        return CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *status = found.status;
    return result;
}
PER_THREAD_STREAM(cuStreamIsCapturing);

API cuStreamGetCaptureInfo_v3(CUstream stream, int *status, uint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                              const void **edges, size_t *count)
{
    struct capture_info found;
    CUresult result = info(stream, &found);
    if (result || !status)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    *status = found.status;
    if (id)
        *id = found.id;
    if (graph && found.status)
        *graph = found.graph;
    if (nodes && found.status)
        *nodes = found.nodes;
    if (edges && found.status)
        *edges = NULL;
    if (count && found.status)
        *count = found.n;
    return CUDA_SUCCESS;
}
PER_THREAD_STREAM(cuStreamGetCaptureInfo_v3);

API cuStreamGetCaptureInfo_v2(CUstream stream, int *status, uint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                              size_t *count)
{
    return cuStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, NULL, count);
}
PER_THREAD_STREAM(cuStreamGetCaptureInfo_v2);

API cuStreamGetCaptureInfo(CUstream stream, int *status, uint64_t *id)
{
    return cuStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
}
PER_THREAD_STREAM(cuStreamGetCaptureInfo);
