/* Captures as programs begin, end and ask about them. */

#include <stdlib.h>

#include "capture.h"
#include "graph.h"
#include "streams.h"

enum { STATUS_NONE, STATUS_ACTIVE, STATUS_BROKEN };

API cuStreamBeginCapture_v2(CUstream stream, int mode)
{
    CUresult result = enter_driver();
    return result ? result : leave(capture_begin(stream, NULL, NULL, 0, mode));
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
    return leave(graph ? capture_begin(stream, graph, nodes, n, mode) : CUDA_ERROR_INVALID_VALUE);
}
PER_THREAD_STREAM(cuStreamBeginCaptureToGraph);

API cuStreamEndCapture(CUstream stream, CUgraph *handle)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    return leave(handle ? capture_end(stream, handle) : CUDA_ERROR_INVALID_VALUE);
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
