/* GPU code images as the program hands them to the driver, kept as far as they hold PTX. */
#ifndef TUI_PROBE_IMAGE_H
#define TUI_PROBE_IMAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_SIZE_UNKNOWN SIZE_MAX

enum image_type { IMAGE_UNKNOWN, IMAGE_ELF, IMAGE_FATBIN, IMAGE_WRAPPED_FATBIN, IMAGE_PTX };

struct image {
    atomic_uint references;
    enum image_type type;
    size_t size;       /* bytes of the program's image */
    uint8_t *ptx;      /* our copy: the PTX, or the container or ELF that carries it; NULL: no PTX */
    size_t ptx_size;
    bool is_too_large; /* there is no copy because the limit of the hook's memory is reached */
    char *saved_path;  /* where the copy has been written; guarded by the preparation lock */
};

/* Classifies CODE of SIZE bytes (IMAGE_SIZE_UNKNOWN if only its own headers tell) and copies what is
 * needed of it. NULL without memory. The caller owns one reference. */
struct image *image_capture(const void *code, size_t size);

/* The same for the contents of a file; NULL if it cannot be read. */
struct image *image_capture_file(const char *path);

void image_release(struct image *image);

/* As event.log spells it. */
const char *image_type_name(enum image_type type);

#endif
