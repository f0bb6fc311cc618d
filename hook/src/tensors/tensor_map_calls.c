/* Wrappers of the functions that make tensor maps: a line in the log for each map of other content. Programs make the
 * same map for each launch, so maps that were logged last are remembered. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "digest.h"
#include "event_log.h"
#include "hook_state.h"
#include "real.h"
#include "sha1.h"

enum { MOST_RANK = 5, REMEMBERED = 1024, LIST_SIZE = 128 };

static atomic_uint_fast64_t remembered[REMEMBERED];

static bool is_new(const void *map)
{
    const struct digest digest = digest_of(map, CU_TENSOR_MAP_BYTES);
    return atomic_exchange(&remembered[digest.low % REMEMBERED], digest.high | 1) != (digest.high | 1);
}

static void write_list(char list[LIST_SIZE], uint32_t n, const void *values, size_t size)
{
    size_t length = 0;
    snprintf(list, LIST_SIZE, "-");
    for (uint32_t i = 0; values && i < n && i < MOST_RANK; i++) {
        uint64_t value = 0;
        memcpy(&value, (const char *)values + i * size, size);
        const char *comma = i ? "," : "";
        length +=
            (size_t)(size == sizeof value ? snprintf(list + length, LIST_SIZE - length, "%s%" PRIu64, comma, value)
                                          : snprintf(list + length, LIST_SIZE - length, "%s%d", comma, (int)value));
    }
}

struct tensor {
    int type;
    uint32_t rank;
    CUdeviceptr address;
    const uint64_t *sizes, *strides;
    const uint32_t *steps;
    int interleave, swizzle, promotion, fill;
};

/* BOX are words of what is copied at a time. */
static CUresult encoded(const char *function, CUresult result, const void *map, const struct tensor *tensor,
                        const char *box)
{
    char sizes[LIST_SIZE], strides[LIST_SIZE], steps[LIST_SIZE], hash[SHA1_HEX_SIZE] = "-";
    if (!hook_active() || (result == CUDA_SUCCESS && !is_new(map)))
        return result;
    if (result == CUDA_SUCCESS)
        sha1_hex(map, CU_TENSOR_MAP_BYTES, hash);
    write_list(sizes, tensor->rank, tensor->sizes, sizeof *tensor->sizes);
    write_list(strides, tensor->rank ? tensor->rank - 1 : 0, tensor->strides, sizeof *tensor->strides);
    write_list(steps, tensor->rank, tensor->steps, sizeof *tensor->steps);
    event_log_often(
        "[tensor-map] %s %d hash %s address %llx rank %u type %d dims %s strides %s %s steps %s interleave %d "
        "swizzle %d promotion %d fill %d\n",
        function, result, hash, tensor->address, tensor->rank, tensor->type, sizes, strides, box, steps,
        tensor->interleave, tensor->swizzle, tensor->promotion, tensor->fill);
    return result;
}

CUresult cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, CUdeviceptr address, const uint64_t *sizes,
                                const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                                int swizzle, int promotion, int fill)
{
    const CUresult result = REAL_OR_NOT_FOUND(cuTensorMapEncodeTiled, map, type, rank, address, sizes, strides, box,
                                              steps, interleave, swizzle, promotion, fill);
    const struct tensor tensor = {type, rank, address, sizes, strides, steps, interleave, swizzle, promotion, fill};
    char words[LIST_SIZE + sizeof "box "] = "box ";
    write_list(words + strlen(words), rank, box, sizeof *box);
    return encoded("cuTensorMapEncodeTiled", result, map, &tensor, words);
}

CUresult cuTensorMapEncodeIm2col(void *map, int type, uint32_t rank, CUdeviceptr address, const uint64_t *sizes,
                                 const uint64_t *strides, const int *lower, const int *upper, uint32_t channels,
                                 uint32_t pixels, const uint32_t *steps, int interleave, int swizzle, int promotion,
                                 int fill)
{
    const CUresult result = REAL_OR_NOT_FOUND(cuTensorMapEncodeIm2col, map, type, rank, address, sizes, strides, lower,
                                              upper, channels, pixels, steps, interleave, swizzle, promotion, fill);
    const struct tensor tensor = {type, rank, address, sizes, strides, steps, interleave, swizzle, promotion, fill};
    char low[LIST_SIZE], high[LIST_SIZE], words[3 * LIST_SIZE];
    write_list(low, rank > 2 ? rank - 2 : 0, lower, sizeof *lower);
    write_list(high, rank > 2 ? rank - 2 : 0, upper, sizeof *upper);
    snprintf(words, sizeof words, "channels %u pixels %u lower %s upper %s", channels, pixels, low, high);
    return encoded("cuTensorMapEncodeIm2col", result, map, &tensor, words);
}

CUresult cuTensorMapEncodeIm2colWide(void *map, int type, uint32_t rank, CUdeviceptr address, const uint64_t *sizes,
                                     const uint64_t *strides, int lower, int upper, uint32_t channels, uint32_t pixels,
                                     const uint32_t *steps, int interleave, int mode, int swizzle, int promotion,
                                     int fill)
{
    const CUresult result =
        REAL_OR_NOT_FOUND(cuTensorMapEncodeIm2colWide, map, type, rank, address, sizes, strides, lower, upper, channels,
                          pixels, steps, interleave, mode, swizzle, promotion, fill);
    const struct tensor tensor = {type, rank, address, sizes, strides, steps, interleave, swizzle, promotion, fill};
    char words[LIST_SIZE];
    snprintf(words, sizeof words, "channels %u pixels %u lower %d upper %d mode %d", channels, pixels, lower, upper,
             mode);
    return encoded("cuTensorMapEncodeIm2colWide", result, map, &tensor, words);
}

CUresult cuTensorMapReplaceAddress(void *map, CUdeviceptr address)
{
    char before[SHA1_HEX_SIZE] = "-", after[SHA1_HEX_SIZE] = "-";
    const bool is_logged = map && hook_active();
    if (is_logged)
        sha1_hex(map, CU_TENSOR_MAP_BYTES, before);
    const CUresult result = REAL_OR_NOT_FOUND(cuTensorMapReplaceAddress, map, address);
    if (!is_logged || (result == CUDA_SUCCESS && !is_new(map)))
        return result;
    if (result == CUDA_SUCCESS)
        sha1_hex(map, CU_TENSOR_MAP_BYTES, after);
    event_log_often("[tensor-map] cuTensorMapReplaceAddress %d hash %s of %s address %llx\n", result, after, before,
                    address);
    return result;
}
