#define _GNU_SOURCE
#include "kept_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device.h"
#include "real.h"
#include "reasons.h"
#include "trace_dir.h"

enum { CHUNK_BYTES = 4 << 20, FOLDER_MODE = 0700, FILE_MODE = 0600, PATH_BYTES = 96 };

static void path_of(char path[PATH_BYTES], const struct kept_folder *folder, const char *name)
{
    snprintf(path, PATH_BYTES, "%s/%s", folder->path, name);
}

const struct reason *kept_folder_create(struct kept_folder *folder, uint32_t kernel, uint64_t launch)
{
    snprintf(folder->path, sizeof folder->path, "kept/%u@%llu", kernel, (unsigned long long)launch);
    if (!own_folder_create(trace_dir_fd(), "kept", FOLDER_MODE) && errno != EEXIST)
        return reason_of_file("kept", errno);
    return own_folder_create(trace_dir_fd(), folder->path, FOLDER_MODE) ? NULL : reason_of_file(folder->path, errno);
}

const struct reason *kept_file_create(const struct kept_folder *folder, const char *name, struct own_file *file)
{
    char path[PATH_BYTES];
    path_of(path, folder, name);
    if (!own_file_create(file, trace_dir_fd(), path, 0))
        return reason_of_file(path, errno);
    return fchmod(own_file_number(file), FILE_MODE) == 0 ? NULL : reason_of_file(path, errno);
}

const struct reason *kept_file_write(const struct kept_folder *folder, const char *name, const void *bytes, size_t size)
{
    struct own_file file;
    const struct reason *reason = kept_file_create(folder, name, &file);
    if (!reason && !own_file_write_all(&file, bytes, size))
        reason = reason_of_file(name, errno);
    if (!own_file_close(&file) && !reason)
        reason = reason_of_file(name, errno);
    return reason;
}

static const struct reason *write_part(const struct kept_folder *folder, const struct image *image, unsigned kept,
                                       const char *name)
{
    struct image_part part;
    const struct reason *reason = image_part_make(image, kept, &part);
    if (!reason)
        reason = kept_file_write(folder, name, part.bytes, part.size);
    image_part_free(&part);
    return reason;
}

const struct reason *kept_image_write(const struct kept_folder *folder, const struct image *image)
{
    CUdevice device;
    const unsigned capability =
        REAL_OR_NOT_FOUND(cuCtxGetDevice, &device) == CUDA_SUCCESS ? device_capability(device) : 0;
    if (!image)
        return reason(IMAGE_UNSEEN);
    const struct reason *no_code = reason(NO_PTX);
    if (image->code && capability)
        no_code = image->code->lost ? image->code->lost : write_part(folder, image, capability, "code.bin");
    if (image->ptx)
        return write_part(folder, image, FATBIN_PTX, "ptx.bin");
    return image->is_too_large && no_code ? reason(HOST_LIMIT) : no_code;
}

static const struct reason *write_chunk(struct own_file *file, CUdeviceptr memory, size_t size, CUstream stream,
                                        void *chunk)
{
    CUresult result = REAL_OR_NOT_FOUND(cuMemcpyDtoHAsync_v2, chunk, memory, size, stream);
    if (result == CUDA_SUCCESS)
        result = REAL_OR_NOT_FOUND(cuStreamSynchronize, stream);
    if (result != CUDA_SUCCESS)
        return reason_of_driver(result);
    return own_file_write_all(file, chunk, size) ? NULL : reason_of_file("memory of a launch", errno);
}

const struct reason *kept_memory_write(struct own_file *file, CUdeviceptr memory, size_t size, CUstream stream,
                                       struct reach *reach)
{
    const struct reason *reason = NULL;
    void *chunk = malloc(CHUNK_BYTES);
    if (!chunk)
        return reason(HOST_MEMORY);
    for (size_t done = 0; done < size && !reason; done += CHUNK_BYTES) {
        const size_t part = size - done < CHUNK_BYTES ? size - done : CHUNK_BYTES;
        reason = write_chunk(file, memory + done, part, stream, chunk);
        if (!reason && reach)
            reach_scan(reach, chunk, part, sizeof(CUdeviceptr));
    }
    free(chunk);
    return reason;
}

void kept_folder_remove(const struct kept_folder *folder)
{
    static const char *const names[] = {"launch.info", "code.bin", "ptx.bin", "before.bin", "after.bin"};
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        path_of(path, folder, names[i]);
        unlinkat(trace_dir_fd(), path, 0);
    }
    unlinkat(trace_dir_fd(), folder->path, AT_REMOVEDIR);
}
