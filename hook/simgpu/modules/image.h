/* The images that a program loads: where one starts and ends. */
#ifndef TUI_PROBE_SIMGPU_IMAGE_H
#define TUI_PROBE_SIMGPU_IMAGE_H

#include "cuda_abi.h"

/* `image` is an ELF file, a fatbin, a wrapper that points to a fatbin, or PTX text that ends with a NUL.
 * `limit`: how many bytes may be read, SIZE_MAX where the program did not say. */
CUresult image_extent(const void *image, size_t limit, const void **start, size_t *bytes);

/* A whole file, with a NUL after its end; to be freed. */
CUresult image_read_file(const char *path, void **image, size_t *bytes);

#endif
