/* The machine code of an image, for kernels that have no PTX: where it can be read again, or our copy of it. */
#ifndef TUI_PROBE_MACHINE_CODE_H
#define TUI_PROBE_MACHINE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "digest.h"
#include "reasons.h"

/* The path of an image to the driver. */
struct origin {
    const char *path;   /* the file that was loaded; NULL: from memory */
    const void *caller; /* who asked the driver to load it; NULL: not known */
};

enum { CODE_FIRST_BYTES = 64 };

struct machine_code {
    bool is_fatbin;
    size_t size; /* bytes of the container or cubin */
    size_t most; /* bytes of it that one device can run, at most */
    /* In a file: where, and how that file was. */
    char *path; /* NULL: it is not in a file */
    off_t offset, file_size;
    dev_t device;
    ino_t inode;
    struct timespec modified;
    uint8_t first[CODE_FIRST_BYTES];
    uint64_t fingerprint; /* of a container */
    /* Elsewhere: a copy. */
    uint8_t *copy;
    const struct reason *lost; /* why there is neither; NULL: there is one */
    char *closed; /* the closed library of NVIDIA's that it belongs to; NULL: none that is known */
};

/* The parts needed of the machine code at BYTES, a container or a cubin of SIZE bytes: a note of its place where it
 * is in a file, else a copy, within bounds. NULL without memory, or if there is no machine code. */
struct machine_code *machine_code_keep(const void *bytes, size_t size, bool is_fatbin, const struct origin *origin);

/* True if BYTES are in a file that the dynamic linker has mapped. */
bool machine_code_is_mapped(const void *bytes, size_t size);

/* A number for its place in its file and the state of that file. False if it is in no file. */
bool machine_code_place(const struct machine_code *code, struct digest *digest);

void machine_code_free(struct machine_code *code);

/* The closed library that a kernel of this name is of where it was linked into another file; NULL: none that is
 * known. */
const char *machine_code_closed_name(const char *kernel);

/* Reads it again, or lends the copy. Returns why that cannot be done, or NULL; then machine_code_leave gives it
 * back. */
const struct reason *machine_code_read(const struct machine_code *code, const uint8_t **bytes);
void machine_code_leave(const struct machine_code *code, const uint8_t *bytes);

#endif
