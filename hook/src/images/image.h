/* GPU code images as the program hands them to the driver, kept if they hold PTX; of machine code
 * it is known where it is. */
#ifndef TUI_PROBE_IMAGE_H
#define TUI_PROBE_IMAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "digest.h"
#include "image_formats.h"
#include "machine_code.h"

#define IMAGE_SIZE_UNKNOWN SIZE_MAX

enum image_type { IMAGE_UNKNOWN, IMAGE_ELF, IMAGE_FATBIN, IMAGE_WRAPPED_FATBIN, IMAGE_PTX };

struct image {
    atomic_uint references;
    enum image_type type;
    size_t size;       /* bytes of the program's image */
    uint8_t *ptx;      /* our copy: the PTX, or the container or ELF that carries it; NULL: no PTX */
    size_t ptx_size;
    struct fatbin_targets code_targets; /* of the program's image, also where none of its machine code is kept */
    bool is_too_large; /* there is no copy of the PTX because the limit of the hook's memory is reached */
    struct machine_code *code; /* NULL: none, or no one asks for it */
    _Atomic(struct digest *) digest; /* NULL: not known yet */
    /* Guarded by the preparation lock: where the image was written, and what of it. */
    char *saved_path;
    unsigned saved;
};

/* Classifies CODE of SIZE bytes (IMAGE_SIZE_UNKNOWN if only its own headers tell) and copies what is
 * needed of it, by its ORIGIN. NULL without memory. The caller owns one reference. */
struct image *image_capture(const void *code, size_t size, const struct origin *origin);

/* The same for the contents of a file; NULL if it cannot be read. */
struct image *image_capture_file(const char *path);

/* True if a device of this compute capability (90 for 9.0) can run its PTX; see fatbin_ptx_for. */
enum fatbin_ptx image_ptx_for(const struct image *image, unsigned device);

/* Bytes to be written for a kernel of it, at most. */
size_t image_most(const struct image *image);

/* The parts of an image in a folder: of PTX the copy, and of machine code what a device can run. */
struct image_part {
    const uint8_t *bytes;
    size_t size;
    uint8_t *own; /* NULL: it is lent */
};

/* Puts together what is KEPT (FATBIN_PTX, and a compute capability). Returns why there is nothing, or NULL; then
 * image_part_free frees it. */
const struct reason *image_part_make(const struct image *image, unsigned kept, struct image_part *part);
void image_part_free(struct image_part *part);

/* A number that equal images have in common. False where too little of it was kept to tell. */
bool image_digest(struct image *image, struct digest *digest);

void image_release(struct image *image);

/* As event.log spells it. */
const char *image_type_name(enum image_type type);

#endif
