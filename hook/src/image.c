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

/* Memory for a copy of SIZE bytes, of which the image knows even if there is none. */
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

static void capture_fatbin(struct image *image, const void *code, size_t size)
{
    image->size = fatbin_size(code, size);
    const size_t ptx_size = fatbin_ptx_size(code, image->size);
    if (ptx_size && make_room(image, ptx_size))
        fatbin_copy_ptx(code, image->size, image->ptx);
}

/* The wrapper is a structure of the program's memory; its pointer leads to the container. */
static void capture_wrapper(struct image *image, const void *code, size_t size)
{
    struct {
        uint32_t magic, version;
        const void *container;
    } wrapper;
    if (size < sizeof wrapper)
        return;
    memcpy(&wrapper, code, sizeof wrapper);
    if (wrapper.container && fatbin_is(wrapper.container, IMAGE_SIZE_UNKNOWN))
        capture_fatbin(image, wrapper.container, IMAGE_SIZE_UNKNOWN);
}

static void capture_elf(struct image *image, const void *code, size_t size)
{
    image->size = elf_size(code, size);
    if (image->size && elf_has_section(code, image->size, ".nv_debug_ptx_txt"))
        keep(image, code, image->size);
}

struct image *image_capture(const void *code, size_t size)
{
    struct image *image = calloc(1, sizeof *image);
    if (!image)
        return NULL;
    atomic_init(&image->references, 1);
    if (magic_of(code, size) == WRAPPER_MAGIC) {
        image->type = IMAGE_WRAPPED_FATBIN;
        capture_wrapper(image, code, size);
    } else if (fatbin_is(code, size)) {
        image->type = IMAGE_FATBIN;
        capture_fatbin(image, code, size);
    } else if (elf_is(code, size)) {
        image->type = IMAGE_ELF;
        capture_elf(image, code, size);
    } else if (looks_like_ptx(code, size)) {
        image->type = IMAGE_PTX;
        image->size = strnlen(code, size);
        keep(image, code, image->size);
    }
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
                image = image_capture(bytes, size);
            munmap(bytes, size);
        }
    }
    close(file);
    return image;
}

void image_release(struct image *image)
{
    if (!image || atomic_fetch_sub(&image->references, 1) != 1)
        return;
    if (image->ptx)
        host_memory_give(HOST_IMAGES, image->ptx_size);
    free(image->ptx);
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
