#include "stopwatch.h"

#include "real.h"

enum { WINDOW_BYTES = 4 << 20 };

struct span {
    CUevent start, end;
};

static bool span_begin(struct span *span, CUstream stream)
{
    *span = (struct span){0};
    return REAL_OR_NOT_FOUND(cuEventCreate, &span->start, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
           REAL_OR_NOT_FOUND(cuEventCreate, &span->end, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
           REAL_OR_NOT_FOUND(cuEventRecord, span->start, stream) == CUDA_SUCCESS;
}

/* Milliseconds between begin and here on the stream, waiting for it; negative if not measured. */
static float span_end(struct span *span, bool begun, CUstream stream, CUresult *result)
{
    float milliseconds = -1;
    if (begun && REAL_OR_NOT_FOUND(cuEventRecord, span->end, stream) == CUDA_SUCCESS) {
        CUresult waited = REAL_OR_NOT_FOUND(cuEventSynchronize, span->end);
        if (*result == CUDA_SUCCESS && waited != CUDA_SUCCESS)
            *result = REAL_OR_NOT_FOUND(cuStreamSynchronize, stream); /* else the event was at fault */
        if (waited != CUDA_SUCCESS ||
            REAL_OR_NOT_FOUND(cuEventElapsedTime, &milliseconds, span->start, span->end) != CUDA_SUCCESS)
            milliseconds = -1;
    }
    if (span->start)
        REAL_OR_NOT_FOUND(cuEventDestroy_v2, span->start);
    if (span->end)
        REAL_OR_NOT_FOUND(cuEventDestroy_v2, span->end);
    return milliseconds;
}

size_t stopwatch_flush_size(void)
{
    CUdevice device;
    int cache = 0;
    if (REAL_OR_NOT_FOUND(cuCtxGetDevice, &device) != CUDA_SUCCESS ||
        REAL_OR_NOT_FOUND(cuDeviceGetAttribute, &cache, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device) != CUDA_SUCCESS)
        return 0;
    return cache > 0 ? 2 * (size_t)cache : 0;
}

/* Writes over the cache. Returns what was written, to be freed: it is not kept, for a context may be
 * destroyed with it and its address be the program's next. */
static CUdeviceptr flush_cache(CUstream stream)
{
    CUdeviceptr scratch = 0;
    size_t size = stopwatch_flush_size();
    if (!size || REAL_OR_NOT_FOUND(cuMemAlloc_v2, &scratch, size) != CUDA_SUCCESS)
        return 0;
    REAL_OR_NOT_FOUND(cuMemsetD8Async, scratch, 0, size, stream);
    return scratch;
}

CUresult stopwatch_launch(const struct launch *launch, CUfunction function, void **parameters, float *milliseconds)
{
    struct span span;
    CUstream stream = launch_stream(launch);
    CUdeviceptr scratch = flush_cache(stream);
    bool begun = span_begin(&span, stream);
    CUresult result = launch_enqueue(launch, function, parameters);
    *milliseconds = span_end(&span, begun, stream, &result);
    if (result != CUDA_SUCCESS)
        *milliseconds = -1;
    if (scratch)
        REAL_OR_NOT_FOUND(cuMemFree_v2, scratch);
    return result;
}

float stopwatch_clear(CUdeviceptr memory, size_t size, CUstream stream)
{
    struct span span;
    bool begun = span_begin(&span, stream);
    CUresult result = REAL_OR_NOT_FOUND(cuMemsetD8Async, memory, 0, size, stream);
    float milliseconds = span_end(&span, begun, stream, &result);
    return result == CUDA_SUCCESS ? milliseconds : -1;
}

float stopwatch_copy_back(CUdeviceptr memory, size_t size, CUstream stream)
{
    struct span span;
    void *window = NULL;
    CUresult result = REAL_OR_NOT_FOUND(cuMemAllocHost_v2, &window, WINDOW_BYTES);
    if (result != CUDA_SUCCESS)
        return -1;
    bool begun = span_begin(&span, stream);
    for (size_t at = 0; at < size && result == CUDA_SUCCESS; at += WINDOW_BYTES)
        result = REAL_OR_NOT_FOUND(cuMemcpyDtoHAsync_v2, window, memory + at,
                                   size - at < WINDOW_BYTES ? size - at : WINDOW_BYTES, stream);
    float milliseconds = span_end(&span, begun, stream, &result);
    REAL_OR_NOT_FOUND(cuMemFreeHost, window);
    return result == CUDA_SUCCESS ? milliseconds : -1;
}
