#include "output.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "own_file.h"
#include "transfer.h"

enum { WRITE_BYTES = 1 << 20 }; /* a slow disk takes them within the patience of those who wait */

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

struct file_part {
    const struct own_file *file;
    const char *bytes;
    uint64_t at;
};

/* With errno 0 where nothing is written any more. */
static ssize_t write_part(const void *argument, size_t done, size_t left)
{
    const struct file_part *part = argument;
    if (atomic_load_explicit(&given_up, memory_order_relaxed)) {
        errno = 0;
        return -1;
    }
    return own_file_write(part->file, part->bytes + done, left < WRITE_BYTES ? left : WRITE_BYTES,
                          (off_t)(part->at + done));
}

bool output_write(const struct own_file *file, uint64_t at, const void *bytes, size_t size)
{
    return transfer_all(write_part, &(struct file_part){file, bytes, at}, size);
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
