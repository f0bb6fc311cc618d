#include <stdint.h>
#include <string.h>

#include "image_formats.h"

static const uint32_t CONTAINER_MAGIC = 0xba55ed50;
enum { KIND_PTX = 1 };

struct container {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t entries_size;
};

struct entry {
    uint16_t kind, version;
    uint32_t header_size;
    uint64_t payload_size;
};

static bool container_of(const void *bytes, size_t limit, struct container *container)
{
    if (limit < sizeof *container)
        return false;
    memcpy(container, bytes, sizeof *container);
    return container->magic == CONTAINER_MAGIC && container->header_size >= sizeof *container;
}

/* Moves to the next entry; false at the end and at an entry that does not fit. */
static bool next_entry(const char **at, size_t *left, struct entry *entry, const char **start, size_t *size)
{
    if (*left < sizeof *entry)
        return false;
    memcpy(entry, *at, sizeof *entry);
    if (entry->header_size < sizeof *entry || entry->header_size > *left ||
        entry->payload_size > *left - entry->header_size)
        return false;
    *start = *at;
    *size = entry->header_size + (size_t)entry->payload_size;
    *at += *size;
    *left -= *size;
    return true;
}

bool fatbin_is(const void *bytes, size_t limit)
{
    uint32_t magic;
    if (limit < sizeof magic)
        return false;
    memcpy(&magic, bytes, sizeof magic);
    return magic == CONTAINER_MAGIC;
}

size_t fatbin_size(const void *bytes, size_t limit)
{
    struct container container;
    if (!container_of(bytes, limit, &container) || container.header_size > limit ||
        container.entries_size > limit - container.header_size)
        return 0;
    return container.header_size + (size_t)container.entries_size;
}

/* Sums the PTX entries and, with COPY, writes them one after another. */
static size_t gather_ptx(const void *bytes, size_t size, char *copy)
{
    struct container container;
    struct entry entry;
    const char *start;
    size_t length, total = 0;
    if (!container_of(bytes, size, &container))
        return 0;
    const char *at = (const char *)bytes + container.header_size;
    size_t left = size - container.header_size;
    while (next_entry(&at, &left, &entry, &start, &length)) {
        if (entry.kind != KIND_PTX)
            continue;
        if (copy)
            memcpy(copy + total, start, length);
        total += length;
    }
    return total;
}

size_t fatbin_ptx_size(const void *bytes, size_t size)
{
    struct container container;
    size_t entries = gather_ptx(bytes, size, NULL);
    return entries && container_of(bytes, size, &container) ? container.header_size + entries : 0;
}

void fatbin_copy_ptx(const void *bytes, size_t size, void *copy)
{
    struct container container;
    if (!container_of(bytes, size, &container))
        return;
    container.entries_size = gather_ptx(bytes, size, (char *)copy + container.header_size);
    memcpy(copy, bytes, container.header_size);
    memcpy(copy, &container, sizeof container);
}
