#include "output.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "own_file.h"

enum { WRITE_BYTES = 1 << 20 }; /* a slow disk takes them while whoever waits is still patient */

static atomic_bool given_up;

void output_give_up(void)
{
    atomic_store(&given_up, true);
}

bool output_begin(struct output *output, const struct own_file *file, uint64_t at, size_t capacity)
{
    *output = (struct output){.file = file, .at = at, .capacity = capacity, .bytes = malloc(capacity)};
    return output->bytes;
}

void output_end(struct output *output)
{
    free(output->bytes);
    output->bytes = NULL;
}

bool output_write(const struct own_file *file, uint64_t at, const void *bytes, size_t size)
{
    const char *from = bytes;
    while (size) {
        if (atomic_load_explicit(&given_up, memory_order_relaxed)) {
            errno = 0;
            return false;
        }
        ssize_t n = own_file_write(file, from, size < WRITE_BYTES ? size : WRITE_BYTES, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        from += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return true;
}

bool output_flush(struct output *output)
{
    if (!output_write(output->file, output->at, output->bytes, output->used))
        return false;
    output->at += output->used;
    output->used = 0;
    return true;
}

void *output_room(struct output *output, size_t size)
{
    if (output->capacity - output->used < size && !output_flush(output))
        return NULL;
    void *room = output->bytes + output->used;
    output->used += size;
    return room;
}

bool output_append(struct output *output, const void *bytes, size_t size)
{
    if (size >= output->capacity) {
        if (!output_flush(output) || !output_write(output->file, output->at, bytes, size))
            return false;
        output->at += size;
        return true;
    }
    void *room = output_room(output, size);
    return room && (memcpy(room, bytes, size), true);
}

bool output_zeros(struct output *output, uint64_t size)
{
    while (size) {
        size_t part = size < output->capacity ? (size_t)size : output->capacity;
        void *room = output_room(output, part);
        if (!room)
            return false;
        memset(room, 0, part);
        size -= part;
    }
    return true;
}
