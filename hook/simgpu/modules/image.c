#include "image.h"

#include <ctype.h>
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint32_t FATBIN_WRAPPER_MAGIC = 0x466243b1, FATBIN_MAGIC = 0xba55ed50;

struct fatbin_wrapper {
    uint32_t magic, version;
    const void *fatbin;
};

struct fatbin {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t payload_bytes;
};

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* 0 for a file that does not fit into `limit` bytes. */
static size_t elf_bytes(const unsigned char *start, size_t limit)
{
    Elf64_Ehdr file;
    if (limit < sizeof file)
        return 0;
    memcpy(&file, start, sizeof file);
    uint64_t table_bytes = (uint64_t)file.e_shnum * sizeof(Elf64_Shdr);
    if (file.e_shoff > limit || table_bytes > limit - file.e_shoff)
        return 0;
    uint64_t end = larger(sizeof file, file.e_shoff + table_bytes);
    end = larger(end, file.e_phoff + (uint64_t)file.e_phnum * sizeof(Elf64_Phdr));
    for (unsigned i = 0; i < file.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, start + file.e_shoff + i * sizeof section, sizeof section);
        if (section.sh_type != SHT_NOBITS)
            end = larger(end, section.sh_offset + section.sh_size);
    }
    return end > limit ? 0 : end;
}

static size_t fatbin_bytes(const void *start, size_t limit)
{
    struct fatbin header;
    if (limit < sizeof header)
        return 0;
    memcpy(&header, start, sizeof header);
    if (header.payload_bytes > limit || header.header_bytes > limit - header.payload_bytes)
        return 0;
    return header.header_bytes + header.payload_bytes;
}

static bool looks_like_text(const char *text)
{
    for (int i = 0; i < 64 && text[i]; i++) {
        if (!isprint((unsigned char)text[i]) && !isspace((unsigned char)text[i]))
            return false;
    }
    return *text;
}

CUresult image_extent(const void *image, size_t limit, const void **start, size_t *bytes)
{
    if (!image)
        return CUDA_ERROR_INVALID_VALUE;
    uint32_t magic = 0;
    memcpy(&magic, image, strnlen(image, sizeof magic)); /* a text may be shorter */
    if (magic == FATBIN_WRAPPER_MAGIC) {
        image = ((const struct fatbin_wrapper *)image)->fatbin;
        memcpy(&magic, image, sizeof magic);
    }
    *start = image;
    *bytes = 0;
    if (magic == FATBIN_MAGIC) {
        *bytes = fatbin_bytes(image, limit);
    } else if (memcmp(&magic, ELFMAG, SELFMAG) == 0) {
        *bytes = elf_bytes(image, limit);
    } else if (looks_like_text(image)) {
        *bytes = strnlen(image, limit);
    }
    return *bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

static bool read_all(int file, char *bytes, size_t count)
{
    while (count) {
        ssize_t got = read(file, bytes, count);
        if (got <= 0)
            return false;
        bytes += got;
        count -= (size_t)got;
    }
    return true;
}

CUresult image_read_file(const char *path, void **image, size_t *bytes)
{
    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return CUDA_ERROR_FILE_NOT_FOUND;
    struct stat status;
    char *content = NULL;
    CUresult result = fstat(file, &status) || !S_ISREG(status.st_mode) ? CUDA_ERROR_INVALID_SOURCE : CUDA_SUCCESS;
    if (!result)
        content = calloc(1, (size_t)status.st_size + 1);
    if (!result && !content)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (!result && !read_all(file, content, (size_t)status.st_size))
        result = CUDA_ERROR_INVALID_SOURCE;
    close(file);
    if (result) {
        free(content);
        return result;
    }
    *image = content;
    *bytes = (size_t)status.st_size;
    return CUDA_SUCCESS;
}
