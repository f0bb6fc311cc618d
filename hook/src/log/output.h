/* A part of a file that is written from front to back. */
#ifndef TUI_PROBE_OUTPUT_H
#define TUI_PROBE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct own_file;

struct output {
    const struct own_file *file;
    uint64_t at; /* where the buffer's bytes belong */
    size_t used, capacity;
    uint8_t *bytes;
};

/* From offset AT on, through a buffer of CAPACITY bytes. False without memory. */
bool output_begin(struct output *output, const struct own_file *file, uint64_t at, size_t capacity);

/* Room for SIZE bytes, at most the capacity, which the caller fills; NULL if the disk refused what came before. */
void *output_room(struct output *output, size_t size);

bool output_append(struct output *output, const void *bytes, size_t size);
bool output_zeros(struct output *output, uint64_t size);
bool output_flush(struct output *output);
void output_end(struct output *output);

/* From now on nothing is written any more: what is under way fails, with an errno of 0. */
void output_give_up(void);

/* All SIZE bytes at offset AT; false, with errno, if the disk refuses. */
bool output_write(const struct own_file *file, uint64_t at, const void *bytes, size_t size);

#endif
