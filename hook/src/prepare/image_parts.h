/* The parts of an image that a probe can be put into on the current device. */
#ifndef TUI_PROBE_IMAGE_PARTS_H
#define TUI_PROBE_IMAGE_PARTS_H

#include "cuda_abi.h"
#include "image.h"
#include "reasons.h"

/* The reason why the machine code of the kernel NAME is left unchanged; NULL: it is not. */
const struct reason *image_parts_code_refused(const char *name, const struct image *image);

/* Chooses the parts of IMAGE to write for its kernel NAME on DEVICE, as FATBIN_PTX and a compute capability. PTX wins
 * where the device can run it. Returns why it is nothing, or NULL. */
const struct reason *image_parts_choose(const char *name, const struct image *image, CUdevice device, unsigned *parts);

#endif
