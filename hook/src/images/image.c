#include "image.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host_memory.h"
#include "image_formats.h"
#include "settings.h"

static const uint32_t WRAPPER_MAGIC = 0x466243b1;

static uint32_t magic_of(const void *code, size_t size)
{
    uint32_t magic = 0;
    if (size >= sizeof magic)
        memcpy(&magic, code, sizeof magic);
    return magic;
}

/* PTX text begins with a comment or .version, after any amount of white space. */
static bool looks_like_ptx(const char *text, size_t size)
{
    static const char version[] = ".version";
    size_t i = 0;
    while (i < size && isspace((unsigned char)text[i]))
        i++;
    if (i + 1 < size && text[i] == '/' && (text[i + 1] == '/' || text[i + 1] == '*'))
        return true;
    size_t matched = 0;
    while (matched < sizeof version - 1 && i + matched < size && text[i + matched] == version[matched])
        matched++;
    return matched == sizeof version - 1;
}

/* Takes memory for a copy of SIZE bytes. The image records it if there is none. */
static bool make_room(struct image *image, size_t size)
{
    image->ptx_size = size;
    image->is_too_large = !host_memory_take(HOST_IMAGES, size);
    if (image->is_too_large)
        return false;
    image->ptx = malloc(size ? size : 1);
    if (!image->ptx)
        host_memory_give(HOST_IMAGES, size);
    return image->ptx;
}

static void keep(struct image *image, const void *bytes, size_t size)
{
    if (make_room(image, size))
        memcpy(image->ptx, bytes, size);
}

static void keep_code(struct image *image, const void *code, bool is_fatbin, const struct origin *origin)
{
    if ((settings.machine_code != MACHINE_CODE_OFF || settings.n_kept) && image->size)
        image->code = machine_code_keep(code, image->size, is_fatbin, origin);
}

static void capture_fatbin(struct image *image, const void *code, size_t size, const struct origin *origin)
{
    image->size = fatbin_size(code, size);
    fatbin_code_targets(code, image->size, &image->code_targets);
    const size_t ptx_size = fatbin_kept_size(code, image->size, FATBIN_PTX);
    if (ptx_size && make_room(image, ptx_size))
        fatbin_copy(code, image->size, FATBIN_PTX, image->ptx);
    keep_code(image, code, true, origin);
}

/* A structure of the program's memory. */
struct wrapper {
    uint32_t magic, version;
    const void *container;
};

static const void *container_of_wrapper(const void *code)
{
    struct wrapper wrapper;
    memcpy(&wrapper, code, sizeof wrapper);
    return wrapper.container;
}

static void capture_wrapper(struct image *image, const void *code, size_t size, const struct origin *origin)
{
    const void *container = size < sizeof(struct wrapper) ? NULL : container_of_wrapper(code);
    if (container && fatbin_is(container, IMAGE_SIZE_UNKNOWN))
        capture_fatbin(image, container, IMAGE_SIZE_UNKNOWN, origin);
}

static void capture_elf(struct image *image, const void *code, size_t size, const struct origin *origin)
{
    image->size = elf_size(code, size);
    if (image->size && elf_has_section(code, image->size, ".nv_debug_ptx_txt"))
        keep(image, code, image->size);
    else
        keep_code(image, code, false, origin);
}

/* Another thread may have found it, too: then it is the same. */
static void keep_digest(struct image *image, struct digest digest)
{
    struct digest *copy = malloc(sizeof *copy), *before = NULL;
    if (copy) {
        *copy = digest;
        if (!atomic_compare_exchange_strong(&image->digest, &before, copy))
            free(copy);
    }
}

/* Reads a small image in memory as a whole, now. One in a mapped file is not on the disk's way into memory yet. */
static void digest_small(struct image *image, const void *code, const struct origin *origin)
{
    enum { SMALL_BYTES = 1 << 20 };
    const void *bytes = code;
    if (image->type == IMAGE_WRAPPED_FATBIN)
        bytes = container_of_wrapper(code);
    if (image->size && image->size <= SMALL_BYTES && (origin->path || !machine_code_is_mapped(bytes, image->size)))
        keep_digest(image, digest_of(bytes, image->size));
}

/* Of what was kept: the place in a file, else the copies. */
static bool digest_kept(const struct image *image, struct digest *digest)
{
    const struct machine_code *code = image->code;
    if (code && machine_code_place(code, digest))
        return true;
    if (image->is_too_large || (code && code->lost) || (!image->ptx && !code))
        return false;
    *digest = digest_of(image->ptx, image->ptx ? image->ptx_size : 0);
    if (code)
        *digest = digest_more(*digest, code->copy, code->size);
    return true;
}

bool image_digest(struct image *image, struct digest *digest)
{
    const struct digest *known = atomic_load(&image->digest);
    if (known) {
        *digest = *known;
        return true;
    }
    if (!digest_kept(image, digest))
        return false;
    keep_digest(image, *digest);
    return true;
}

struct image *image_capture(const void *code, size_t size, const struct origin *origin)
{
    struct image *image = calloc(1, sizeof *image);
    if (!image)
        return NULL;
    atomic_init(&image->references, 1);
    if (magic_of(code, size) == WRAPPER_MAGIC) {
        image->type = IMAGE_WRAPPED_FATBIN;
        capture_wrapper(image, code, size, origin);
    } else if (fatbin_is(code, size)) {
        image->type = IMAGE_FATBIN;
        capture_fatbin(image, code, size, origin);
    } else if (elf_is(code, size)) {
        image->type = IMAGE_ELF;
        capture_elf(image, code, size, origin);
    } else if (looks_like_ptx(code, size)) {
        image->type = IMAGE_PTX;
        image->size = strnlen(code, size);
        keep(image, code, image->size);
    }
    digest_small(image, code, origin);
    return image;
}

struct image *image_capture_file(const char *path)
{
    struct stat status;
    struct image *image = NULL;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return NULL;
    if (fstat(file, &status) == 0 && status.st_size > 0) {
        size_t size = (size_t)status.st_size;
        void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
        if (bytes != MAP_FAILED) {
            /* A wrapper's pointer means nothing in a file. */
            if (magic_of(bytes, size) != WRAPPER_MAGIC)
                image = image_capture(bytes, size, &(struct origin){.path = path});
            munmap(bytes, size);
        }
    }
    close(file);
    return image;
}

enum fatbin_ptx image_ptx_for(const struct image *image, unsigned device)
{
    if (!image->ptx)
        return FATBIN_PTX_NONE;
    const bool is_fatbin = image->type == IMAGE_FATBIN || image->type == IMAGE_WRAPPED_FATBIN;
    return is_fatbin ? fatbin_ptx_for(image->ptx, image->ptx_size, device, &image->code_targets) : FATBIN_PTX_RUNS;
}

size_t image_most(const struct image *image)
{
    return image->ptx || !image->code ? image->ptx_size : image->code->most;
}

/* A container of PTX, where that is kept, and behind it one of machine code. */
static const struct reason *join(const struct image *image, const uint8_t *code, unsigned kept, struct image_part *part)
{
    const size_t of_code = fatbin_kept_size(code, image->code->size, kept & ~FATBIN_PTX);
    const size_t of_ptx = kept & FATBIN_PTX ? image->ptx_size : 0;
    if (!of_code && !of_ptx)
        return reason(NO_PTX);
    if (!(part->own = malloc(of_ptx + of_code)))
        return reason(HOST_MEMORY);
    if (of_ptx)
        memcpy(part->own, image->ptx, of_ptx);
    if (of_code)
        fatbin_copy(code, image->code->size, kept & ~FATBIN_PTX, part->own + of_ptx);
    part->bytes = part->own;
    part->size = of_ptx + of_code;
    return NULL;
}

const struct reason *image_part_make(const struct image *image, unsigned kept, struct image_part *part)
{
    const uint8_t *code;
    *part = (struct image_part){.bytes = image->ptx, .size = image->ptx_size};
    if (!(kept & ~FATBIN_PTX))
        return NULL;
    const struct reason *reason = machine_code_read(image->code, &code);
    if (reason)
        return kept & FATBIN_PTX ? NULL : reason;
    if (image->code->is_fatbin)
        reason = join(image, code, kept, part);
    else if (!(part->own = malloc(image->code->size)))
        reason = reason(HOST_MEMORY);
    else
        part->bytes = memcpy(part->own, code, part->size = image->code->size);
    machine_code_leave(image->code, code);
    return reason;
}

void image_part_free(struct image_part *part)
{
    free(part->own);
    *part = (struct image_part){0};
}

void image_release(struct image *image)
{
    if (!image || atomic_fetch_sub(&image->references, 1) != 1)
        return;
    if (image->ptx)
        host_memory_give(HOST_IMAGES, image->ptx_size);
    free(image->ptx);
    machine_code_free(image->code);
    free(atomic_load(&image->digest));
    free(image->saved_path);
    free(image);
}

const char *image_type_name(enum image_type type)
{
    switch (type) {
    case IMAGE_ELF:
        return "elf";
    case IMAGE_FATBIN:
        return "fatbin";
    case IMAGE_WRAPPED_FATBIN:
        return "warpped_fatbin"; /* the spelling of every existing trace */
    case IMAGE_PTX:
        return "ptx";
    default:
        return "unknown";
    }
}
