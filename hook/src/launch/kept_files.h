/* The files of a saved launch, in a directory that only the user can read: memory may hold secrets. */
#ifndef TUI_PROBE_KEPT_FILES_H
#define TUI_PROBE_KEPT_FILES_H

#include "image.h"
#include "own_file.h"
#include "reach.h"

struct kept_folder {
    char path[64]; /* in the trace's directory: kept/KERNEL@LAUNCH */
};

/* Each returns the reason of a failure, or NULL. */
const struct reason *kept_folder_create(struct kept_folder *folder, uint32_t kernel, uint64_t launch);
const struct reason *kept_file_create(const struct kept_folder *folder, const char *name, struct own_file *file);
const struct reason *kept_file_write(const struct kept_folder *folder, const char *name, const void *bytes,
                                     size_t size);

/* Writes the machine code for the current device, code.bin, and the PTX, ptx.bin, or the one that there is. */
const struct reason *kept_image_write(const struct kept_folder *folder, const struct image *image);

/* Appends memory of the GPU to FILE, once the work in STREAM has ended. REACH, if it is not NULL, gets the words. */
const struct reason *kept_memory_write(struct own_file *file, CUdeviceptr memory, size_t size, CUstream stream,
                                       struct reach *reach);

void kept_folder_remove(const struct kept_folder *folder);

#endif
