#include "bench_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "buffers.h"
#include "capacities.h"
#include "drain_dropped.h"
#include "drain_wake.h"
#include "real.h"
#include "reasons.h"
#include "record_bytes.h"
#include "reservations.h"
#include "result.h"
#include "result_file.h"
#include "variants.h"

enum { WINDOW_BYTES = 4 << 20 };

static const struct reason *allocate(struct bench_buffer *buffer)
{
    if (buffer->size && REAL_OR_NOT_FOUND(cuMemAlloc_v2, &buffer->memory, buffer->size) != CUDA_SUCCESS)
        return reason(PROBE_MEMORY);
    return NULL;
}

const struct reason *bench_buffer_make(struct bench_buffer *buffer, struct launch *launch, struct kernel_probe *probe,
                                       struct variant *variant)
{
    *buffer = (struct bench_buffer){0};
    const struct reason *reason = record_bytes(launch, probe, variant, &buffer->size);
    return reason ? reason : allocate(buffer);
}

const struct reason *bench_buffer_make_sized(struct bench_buffer *buffer, const struct launch *launch,
                                             const struct kernel_probe *probe)
{
    *buffer = (struct bench_buffer){0};
    if (!layout_device_size(probe, launch->capacities, launch->grid, launch->block, &buffer->size))
        return reason(TOO_MANY_RECORDS);
    return allocate(buffer);
}

void bench_buffer_free(struct bench_buffer *buffer)
{
    if (buffer->memory)
        REAL_OR_NOT_FOUND(cuMemFree_v2, buffer->memory);
    *buffer = (struct bench_buffer){0};
}

/* The part of the buffer that is on the host. */
struct window {
    const struct bench_buffer *buffer;
    CUstream stream;
    uint8_t *bytes;
    size_t from, to;
    CUresult result;
};

static const void *read_window(void *argument, size_t offset, size_t size)
{
    struct window *w = argument;
    if (offset < w->from || offset + size > w->to) {
        size_t length = w->buffer->size - offset < WINDOW_BYTES ? w->buffer->size - offset : WINDOW_BYTES;
        w->result = REAL_OR_NOT_FOUND(cuMemcpyDtoHAsync_v2, w->bytes, w->buffer->memory + offset, length, w->stream);
        if (w->result == CUDA_SUCCESS)
            w->result = REAL_OR_NOT_FOUND(cuStreamSynchronize, w->stream);
        if (w->result != CUDA_SUCCESS)
            return NULL;
        w->from = offset;
        w->to = offset + length;
    }
    return w->bytes + (offset - w->from);
}

static struct piece piece_of(const struct launch *launch, struct kernel_probe *probe)
{
    struct piece piece = {.number = launch->number,
                          .probe = probe,
                          .capacities = launch->capacities,
                          .shared = launch->shared};
    memcpy(piece.grid, launch->grid, sizeof piece.grid);
    memcpy(piece.block, launch->block, sizeof piece.block);
    return piece;
}

bool bench_buffer_learn(const struct bench_buffer *buffer, const struct launch *launch, struct kernel_probe *probe)
{
    struct window window = {.buffer = buffer, .stream = launch_stream(launch)};
    struct result_source source = {.read = read_window, .argument = &window, .window = WINDOW_BYTES};
    const struct piece piece = piece_of(launch, probe);
    if (!probe->dynamic || !buffer->size || !(window.bytes = malloc(WINDOW_BYTES)))
        return false;
    result_file_learn(&piece, &source);
    free(window.bytes);
    return !window.result;
}

bool bench_buffer_overflowed(const struct bench_buffer *buffer, const struct launch *launch, struct kernel_probe *probe,
                             const struct variant *variant)
{
    return bench_buffer_learn(buffer, launch, probe) &&
           capacities_choose(probe, launch->grid, launch->block, record_bytes_limit(variant)) != launch->capacities;
}

void bench_buffer_save(const struct bench_buffer *buffer, const struct launch *launch, struct kernel_probe *probe)
{
    struct window window = {.buffer = buffer, .stream = launch_stream(launch)};
    struct result_source source = {.read = read_window, .argument = &window, .window = WINDOW_BYTES};
    struct piece piece = piece_of(launch, probe);
    size_t saved = buffer->size;
    layout_saved_size(probe, launch->capacities, launch->grid, launch->block, &saved);
    const struct reason *reason = result_reserve(probe, saved);
    if (!reason && !(window.bytes = malloc(WINDOW_BYTES)))
        reason = reason(HOST_MEMORY);
    if (!reason) {
        piece.stamp = result_stamp(launch->time);
        if (!result_write(&piece, &source))
            reason = window.result ? reason_of_driver(window.result) : result_stopped();
    }
    if (reason) {
        budget_refused(reason);
        drain_dropped(1, reason);
        drain_wake(); /* that thread looks when the disk has room again */
    }
    free(window.bytes);
}
