#include "memory_hash.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "event_log.h"
#include "kept_description.h"
#include "launch.h"
#include "parameters.h"
#include "real.h"
#include "reasons.h"
#include "registry.h"
#include "settings.h"
#include "streams.h"

enum { CHUNK_BYTES = 1 << 20, ANY_PARAMETER = -1 };
#define FNV_START UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

/* One launch whose memory is hashed; PARAMETER is the one that the user named. */
struct hashed {
    const struct launch *launch;
    const struct kernel *kernel;
    long parameter;
    CUstream stream;
    uint8_t *chunk;
};

/* FNV-1a, eight bytes at a time; the rest byte by byte. */
static uint64_t hash_of(uint64_t hash, const uint8_t *bytes, size_t size)
{
    uint64_t word;
    for (; size >= sizeof word; bytes += sizeof word, size -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = (hash ^ word) * FNV_PRIME;
        hash ^= hash >> 32;
    }
    for (; size; bytes++, size--)
        hash = (hash ^ *bytes) * FNV_PRIME;
    return hash;
}

static CUresult hash_memory(const struct hashed *hashed, CUdeviceptr memory, size_t size, uint64_t *hash)
{
    CUresult result = CUDA_SUCCESS;
    *hash = FNV_START;
    for (size_t at = 0; at < size && result == CUDA_SUCCESS; at += CHUNK_BYTES) {
        const size_t part = size - at < CHUNK_BYTES ? size - at : CHUNK_BYTES;
        result = REAL_OR_NOT_FOUND(cuMemcpyDtoHAsync_v2, hashed->chunk, memory + at, part, hashed->stream);
        if (result == CUDA_SUCCESS)
            result = REAL_OR_NOT_FOUND(cuStreamSynchronize, hashed->stream);
        if (result == CUDA_SUCCESS)
            *hash = hash_of(*hash, hashed->chunk, part);
    }
    return result;
}

/* Logs the memory that a value of a parameter points to, if it does. The list of allocations is locked. */
static CUresult log_value(const struct hashed *hashed, size_t parameter, size_t offset, CUdeviceptr address)
{
    uint64_t hash = 0;
    const struct allocation *allocation = allocations_find(address);
    if (!allocation)
        return CUDA_SUCCESS;
    const size_t size = allocation->size - (size_t)(address - allocation->memory);
    const CUresult result = hash_memory(hashed, address, size, &hash);
    if (result == CUDA_SUCCESS)
        event_log_summary("[hash] launch %llu kernel %u parameter %zu offset %zu bytes %zu hash %016llx\n",
                          (unsigned long long)hashed->launch->number, hashed->kernel->index, parameter, offset, size,
                          (unsigned long long)hash);
    return result;
}

static void log_parameters(const struct hashed *hashed, const struct parameter *list, size_t n,
                           const struct packed_parameters *packed)
{
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < n; i++)
        for (size_t at = 0; at + sizeof(CUdeviceptr) <= list[i].size && result == CUDA_SUCCESS;
             at += sizeof(CUdeviceptr)) {
            CUdeviceptr address;
            memcpy(&address, packed->bytes + list[i].offset + at, sizeof address);
            if (hashed->parameter == ANY_PARAMETER || hashed->parameter == (long)i)
                result = log_value(hashed, i, at, address);
        }
}

/* The kernel waits for nothing afterwards, and its memory stays as it is while the list is locked. */
static void log_memory(struct hashed *hashed)
{
    const CUfunction function = registry_function(hashed->launch->instance, hashed->launch->function);
    struct parameter *list = NULL;
    struct packed_parameters packed = {0};
    size_t n = 0;
    hashed->chunk = malloc(CHUNK_BYTES);
    if (hashed->chunk && parameters_read(function, NULL, &list, &n) &&
        !kept_parameters(hashed->launch, function, &packed) && REAL_OR_NOT_FOUND(cuCtxSynchronize) == CUDA_SUCCESS) {
        allocations_lock();
        log_parameters(hashed, list, n, &packed);
        allocations_unlock();
    }
    free(packed.bytes);
    free(list);
    free(hashed->chunk);
}

/* "KERNEL@N" names the parameter, "KERNEL" all of them. */
static bool is_chosen(const char *choice, const char *kernel, long *parameter)
{
    const char *at = strrchr(choice, '@');
    const size_t length = at ? (size_t)(at - choice) : strlen(choice);
    *parameter = at ? strtol(at + 1, NULL, 10) : ANY_PARAMETER;
    for (; *kernel; kernel++)
        if (strncmp(kernel, choice, length) == 0)
            return true;
    return false;
}

void memory_hash_log(const struct launch *launch, const struct kernel *kernel)
{
    struct hashed hashed = {.launch = launch, .kernel = kernel, .stream = launch_stream(launch)};
    if (streams_any_capture()) /* which waiting for the whole context would end */
        return;
    const int mode = capture_mode_relax();
    for (char *const *choice = settings.hashed; *choice; choice++)
        if (is_chosen(*choice, kernel->name, &hashed.parameter))
            log_memory(&hashed);
    capture_mode_restore(mode);
}
