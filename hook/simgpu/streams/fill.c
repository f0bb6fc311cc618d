/* cuMemset…: one value of 1, 2 or 4 bytes, repeated over a range or over the rows of a rectangle. */

#include <string.h>

#include "capture.h"
#include "current.h"
#include "journal.h"
#include "memory.h"
#include "work_kinds.h"

static void fill_row(unsigned char *row, uint32_t value, size_t value_bytes, size_t count)
{
    if (value_bytes == 1) {
        memset(row, (int)value, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        memcpy(row + i * value_bytes, &value, value_bytes); /* little-endian */
}

static CUresult fill_rows(CUdeviceptr address, size_t pitch, uint32_t value, size_t value_bytes, size_t count,
                          size_t rows)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    if (!count || !rows)
        return leave(CUDA_SUCCESS);
    size_t last_row, row_bytes, bytes;
    bool fits = !__builtin_mul_overflow(count, value_bytes, &row_bytes) &&
                !__builtin_mul_overflow(pitch, rows - 1, &last_row) &&
                !__builtin_add_overflow(last_row, row_bytes, &bytes) && address % value_bytes == 0 &&
                (rows == 1 || pitch >= row_bytes);
    if (fits && !memory_holds(address, bytes)) {
        memory_report("cuMemset", address, bytes);
        fits = false;
    }
    for (size_t row = 0; fits && row < rows; row++)
        journal_add(JOURNAL_INITIALISED, address + row * pitch, row_bytes);
    if (leave(fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t row = 0; row < rows; row++) {
        fill_row((unsigned char *)address + row * pitch, value, value_bytes, count);
    }
    return CUDA_SUCCESS;
}

static CUresult fill_now(const CUfillNode *fill)
{
    return fill_rows(fill->address, fill->pitch, fill->value, fill->value_bytes, fill->width, fill->height);
}

static CUresult run_fill(const struct work *work)
{
    return fill_now(&work->of.fill);
}

const struct work_kind fill_work = {.type = NODE_FILL, .run = run_fill};

static CUresult fill_in(CUstream stream, const CUfillNode *fill)
{
    driver_lock();
    if (capture_of(stream)) {
        struct work work = {.kind = &fill_work, .of.fill = *fill};
        return leave(capture_work(stream, &work));
    }
    driver_unlock();
    return fill_now(fill);
}

/* The four forms of one function for each width of a value. */
#define FILL(bits, value_type)                                                                                     \
    API cuMemsetD##bits##_v2(CUdeviceptr address, value_type value, size_t count)                                  \
    {                                                                                                              \
        return fill_rows(address, 0, value, bits / 8, count, 1);                                                   \
    }                                                                                                              \
    PER_THREAD_DEFAULT(cuMemsetD##bits##_v2);                                                                      \
    API cuMemsetD##bits##Async(CUdeviceptr address, value_type value, size_t count, CUstream stream)               \
    {                                                                                                              \
        return fill_in(stream, &(CUfillNode){address, 0, value, bits / 8, count, 1});                              \
    }                                                                                                              \
    PER_THREAD_STREAM(cuMemsetD##bits##Async);                                                                     \
    API cuMemsetD2D##bits##_v2(CUdeviceptr address, size_t pitch, value_type value, size_t width, size_t height)   \
    {                                                                                                              \
        return fill_rows(address, pitch, value, bits / 8, width, height);                                          \
    }                                                                                                              \
    PER_THREAD_DEFAULT(cuMemsetD2D##bits##_v2);                                                                    \
    API cuMemsetD2D##bits##Async(CUdeviceptr address, size_t pitch, value_type value, size_t width, size_t height, \
                                 CUstream stream)                                                                  \
    {                                                                                                              \
        return fill_in(stream, &(CUfillNode){address, pitch, value, bits / 8, width, height});                     \
    }                                                                                                              \
    PER_THREAD_STREAM(cuMemsetD2D##bits##Async)

FILL(8, unsigned char);
FILL(16, unsigned short);
FILL(32, unsigned);
