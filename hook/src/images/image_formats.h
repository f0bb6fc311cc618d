/* Sizes and contents of the two binary containers of GPU code. Every function takes the number of
 * bytes that may be read and never reads beyond it; sizes of 0 mean "not well formed". */
#ifndef TUI_PROBE_IMAGE_FORMATS_H
#define TUI_PROBE_IMAGE_FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool elf_is(const void *bytes, size_t limit);
size_t elf_size(const void *bytes, size_t limit);
bool elf_has_section(const void *bytes, size_t size, const char *name);

bool fatbin_is(const void *bytes, size_t limit);
size_t fatbin_size(const void *bytes, size_t limit);

/* The parts kept of a container: PTX, and machine code. Code of one device is named by its compute capability, 90 for
 * 9.0: what that device can run. */
#define FATBIN_PTX 0x80000000u
#define FATBIN_ANY_CODE 0x7fffffffu

/* Size of a container that holds only what is KEPT of this one, 0 if that is nothing; and that container, entries
 * copied as they are (compressed ones stay compressed). */
size_t fatbin_kept_size(const void *bytes, size_t size, unsigned kept);
void fatbin_copy(const void *bytes, size_t size, unsigned kept, void *copy);

/* A number that tells its entries' headers, and so their kinds and sizes, from others. */
uint64_t fatbin_fingerprint(const void *bytes, size_t size);

/* Bytes of the largest machine code in it. */
size_t fatbin_largest_code(const void *bytes, size_t size);

/* The targets of a container's machine code, each once, as their entries' headers have them. A larger one is what the
 * driver rather takes. */
struct fatbin_targets {
    uint32_t of[32]; /* compilers know fewer */
    size_t n;
};
void fatbin_code_targets(const void *bytes, size_t size, struct fatbin_targets *targets);

/* Answers for PTX of the container on a device: there is none, it is for newer ones, only its text tells, it can; it
 * can, but the device runs CODE for another target. Code under __CUDA_ARCH__ may then be other code: a compiler for
 * sm_90a sees what one for sm_90 does not. */
enum fatbin_ptx { FATBIN_PTX_NONE, FATBIN_PTX_NEWER, FATBIN_PTX_MAY_RUN, FATBIN_PTX_RUNS, FATBIN_PTX_OF_OTHER_CODE };
enum fatbin_ptx fatbin_ptx_for(const void *bytes, size_t size, unsigned device, const struct fatbin_targets *code);

#endif
