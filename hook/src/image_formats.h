/* Sizes and contents of the two binary containers of GPU code. Every function takes the number of
 * bytes that may be read and never reads beyond it; sizes of 0 mean "not well formed". */
#ifndef TUI_PROBE_IMAGE_FORMATS_H
#define TUI_PROBE_IMAGE_FORMATS_H

#include <stdbool.h>
#include <stddef.h>

bool elf_is(const void *bytes, size_t limit);
size_t elf_size(const void *bytes, size_t limit);
bool elf_has_section(const void *bytes, size_t size, const char *name);

bool fatbin_is(const void *bytes, size_t limit);
size_t fatbin_size(const void *bytes, size_t limit);

/* Size of a container that holds only the PTX entries of this one, 0 if there are none; and that
 * container, entries copied as they are (compressed ones stay compressed). */
size_t fatbin_ptx_size(const void *bytes, size_t size);
void fatbin_copy_ptx(const void *bytes, size_t size, void *copy);

#endif
