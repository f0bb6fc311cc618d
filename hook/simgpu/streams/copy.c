/* Copies and fills. They happen immediately: device memory is mapped into this process. */

#include <string.h>

#include "capture.h"
#include "current.h"
#include "journal.h"
#include "memory.h"
#include "work_kinds.h"

/* The device's side of a copy must be in one allocation. Bytes outside our mapping belong to the program, which is
 * trusted with its own pointers, as by the real driver. */
static bool is_device_range(CUdeviceptr address, size_t bytes)
{
    return bytes == 0 || memory_holds(address, bytes);
}

static bool is_any_range(CUdeviceptr address, size_t bytes)
{
    return bytes == 0 || (memory_is_ours(address) ? memory_holds(address, bytes) : address != 0);
}

static CUresult copy(CUdeviceptr target, bool target_on_device, CUdeviceptr source, bool source_on_device, size_t bytes)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    bool target_fits = target_on_device ? is_device_range(target, bytes) : is_any_range(target, bytes);
    bool source_fits = source_on_device ? is_device_range(source, bytes) : is_any_range(source, bytes);
    if (target_fits && source_fits && bytes && memory_is_ours(target))
        journal_add(JOURNAL_INITIALISED, target, bytes);
    if (!target_fits || !source_fits)
        memory_report("cuMemcpy", target_fits ? source : target, bytes);
    result = leave(target_fits && source_fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    if (!result && bytes)
        memmove((void *)target, (const void *)source, bytes);
    return result;
}

static CUresult to_device(CUdeviceptr target, const void *source, size_t bytes)
{
    return copy(target, true, (uintptr_t)source, false, bytes);
}

static CUresult to_host(void *target, CUdeviceptr source, size_t bytes)
{
    return copy((uintptr_t)target, false, source, true, bytes);
}

static struct work work_of_copy(CUdeviceptr target, CUdeviceptr source, size_t bytes)
{
    return (struct work){.kind = &copy_work,
                         .of.copy = {.source_type = MEMORY_UNIFIED,
                                     .source_device = source,
                                     .target_type = MEMORY_UNIFIED,
                                     .target_device = target,
                                     .width = bytes,
                                     .height = 1,
                                     .depth = 1}};
}

/* True if a copy for this stream became a node of a graph; *RESULT is then what the call returns. */
static bool is_captured(CUstream stream, CUdeviceptr target, CUdeviceptr source, size_t bytes, CUresult *result)
{
    driver_lock();
    const bool captured = capture_of(stream) != NULL;
    if (captured) {
        struct work work = work_of_copy(target, source, bytes);
        *result = capture_work(stream, &work);
    }
    driver_unlock();
    return captured;
}

API cuMemcpyHtoD_v2(CUdeviceptr target, const void *source, size_t bytes)
{
    return to_device(target, source, bytes);
}
PER_THREAD_DEFAULT(cuMemcpyHtoD_v2);

API cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void *source, size_t bytes, CUstream stream)
{
    CUresult result;
    if (is_captured(stream, target, (uintptr_t)source, bytes, &result))
        return result;
    return to_device(target, source, bytes);
}
PER_THREAD_STREAM(cuMemcpyHtoDAsync_v2);

API cuMemcpyDtoH_v2(void *target, CUdeviceptr source, size_t bytes)
{
    return to_host(target, source, bytes);
}
PER_THREAD_DEFAULT(cuMemcpyDtoH_v2);

API cuMemcpyDtoHAsync_v2(void *target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    CUresult result;
    if (is_captured(stream, (uintptr_t)target, source, bytes, &result))
        return result;
    return to_host(target, source, bytes);
}
PER_THREAD_STREAM(cuMemcpyDtoHAsync_v2);

API cuMemcpyDtoD_v2(CUdeviceptr target, CUdeviceptr source, size_t bytes)
{
    return copy(target, true, source, true, bytes);
}
PER_THREAD_DEFAULT(cuMemcpyDtoD_v2);

API cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    CUresult result;
    if (is_captured(stream, target, source, bytes, &result))
        return result;
    return copy(target, true, source, true, bytes);
}
PER_THREAD_STREAM(cuMemcpyDtoDAsync_v2);

API cuMemcpy(CUdeviceptr target, CUdeviceptr source, size_t bytes)
{
    return copy(target, false, source, false, bytes);
}
PER_THREAD_DEFAULT(cuMemcpy);

API cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    CUresult result;
    if (is_captured(stream, target, source, bytes, &result))
        return result;
    return copy(target, false, source, false, bytes);
}
PER_THREAD_STREAM(cuMemcpyAsync);

/* A rectangle of a copy: where it starts, and whether that is on the device. False for an array. */
static bool rectangle_start(unsigned type, const void *host, CUdeviceptr device, CUdeviceptr *start, bool *on_device)
{
    *start = type == MEMORY_HOST ? (uintptr_t)host : device;
    *on_device = type == MEMORY_DEVICE;
    return type == MEMORY_HOST || type == MEMORY_DEVICE || type == MEMORY_UNIFIED;
}

static CUresult copy_rectangle(const CUmemcpy2D *plan)
{
    CUdeviceptr target, source;
    bool target_on_device, source_on_device;
    if (!plan)
        return CUDA_ERROR_INVALID_VALUE;
    if (!rectangle_start(plan->target_type, plan->target_host, plan->target_device, &target, &target_on_device) ||
        !rectangle_start(plan->source_type, plan->source_host, plan->source_device, &source, &source_on_device)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    size_t target_pitch = plan->target_pitch ? plan->target_pitch : plan->width;
    size_t source_pitch = plan->source_pitch ? plan->source_pitch : plan->width;
    if (target_pitch < plan->width || source_pitch < plan->width)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t row = 0; row < plan->height; row++) {
        CUresult result =
            copy(target + (plan->target_y + row) * target_pitch + plan->target_x, target_on_device,
                 source + (plan->source_y + row) * source_pitch + plan->source_x, source_on_device, plan->width);
        if (result)
            return result;
    }
    return CUDA_SUCCESS;
}

static CUmemcpy3D flat_box(const CUmemcpy2D *plan)
{
    return (CUmemcpy3D){.source_x = plan->source_x,
                        .source_y = plan->source_y,
                        .source_type = plan->source_type,
                        .source_host = plan->source_host,
                        .source_device = plan->source_device,
                        .source_pitch = plan->source_pitch,
                        .target_x = plan->target_x,
                        .target_y = plan->target_y,
                        .target_type = plan->target_type,
                        .target_host = plan->target_host,
                        .target_device = plan->target_device,
                        .target_pitch = plan->target_pitch,
                        .width = plan->width,
                        .height = plan->height,
                        .depth = 1};
}

API cuMemcpy2D_v2(const CUmemcpy2D *plan)
{
    return copy_rectangle(plan);
}
PER_THREAD_DEFAULT(cuMemcpy2D_v2);
SAME_AS(cuMemcpy2DUnaligned_v2, cuMemcpy2D_v2);
SAME_AS(cuMemcpy2DUnaligned_v2_ptds, cuMemcpy2D_v2);

API cuMemcpy2DAsync_v2(const CUmemcpy2D *plan, CUstream stream)
{
    driver_lock();
    if (plan && capture_of(stream)) {
        struct work work = {.kind = &copy_work, .of.copy = flat_box(plan)};
        return leave(capture_work(stream, &work));
    }
    driver_unlock();
    return copy_rectangle(plan);
}
PER_THREAD_STREAM(cuMemcpy2DAsync_v2);

/* Rows of slices of bytes; NOT_SUPPORTED for arrays. */
static CUresult copy_boxes(const CUmemcpy3D *plan)
{
    CUmemcpy2D slice = {.source_x = plan->source_x,
                        .source_type = plan->source_type,
                        .source_host = plan->source_host,
                        .source_device = plan->source_device,
                        .source_pitch = plan->source_pitch,
                        .target_x = plan->target_x,
                        .target_type = plan->target_type,
                        .target_host = plan->target_host,
                        .target_device = plan->target_device,
                        .target_pitch = plan->target_pitch,
                        .width = plan->width,
                        .height = plan->height};
    CUresult result = CUDA_SUCCESS;
    for (size_t z = 0; z < plan->depth && !result; z++) {
        slice.source_y = plan->source_y + (plan->source_z + z) * plan->source_height;
        slice.target_y = plan->target_y + (plan->target_z + z) * plan->target_height;
        result = copy_rectangle(&slice);
    }
    return result;
}

static CUresult run_copy(const struct work *work)
{
    return copy_boxes(&work->of.copy);
}

const struct work_kind copy_work = {.type = NODE_COPY, .run = run_copy};
