/* Converts the rows of an even map as the hook does when it saves them. On standard input, again and again: u32 blocks,
 * threads per block, records per slot, bytes that are seen at a time, bytes of the map on the device, and these. Answers
 * the slots of all threads. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "convert.h"
#include "own_file.h"

enum { OUTPUT_BYTES = 1 << 20 };

struct request {
    uint32_t blocks, threads, cap, window, size;
};

static const void *read_memory(void *argument, size_t offset, size_t size)
{
    (void)size;
    return (const uint8_t *)argument + offset;
}

static void convert(const struct request *r, uint8_t *device)
{
    const struct map map = {
        .level = MAP_THREAD, .layout = MAP_ROWS, .record = EVEN_RECORD_BYTES, .cap = r->cap, .even = true};
    const struct extent extent = {.blocks = r->blocks, .threads = r->threads, .warps = (r->threads + 31) / 32};
    const size_t size = (size_t)r->blocks * r->threads * r->cap * EVEN_RECORD_BYTES;
    struct result_source source = {read_memory, device, r->window};
    struct output records, counts;
    char *bytes = malloc(size), path[] = "/tmp/rows.XXXXXX", other[] = "/tmp/counts.XXXXXX";
    struct own_file file, second;
    const bool opened = own_file_take(&file, mkstemp(path)) && own_file_take(&second, mkstemp(other));
    struct conversion conversion = {.map = &map,
                                    .cap = r->cap,
                                    .file_cap = r->cap,
                                    .extent = extent,
                                    .source = &source,
                                    .records = &records,
                                    .second = &counts};
    if (!bytes || !opened || !output_begin(&records, &file, 0, OUTPUT_BYTES) ||
        !output_begin(&counts, &second, 0, OUTPUT_BYTES) || !convert_map(&conversion) || !output_flush(&records) ||
        ftruncate(file.number, (off_t)size) || pread(file.number, bytes, size, 0) != (ssize_t)size)
        exit(3);
    fwrite(bytes, 1, size, stdout);
    output_end(&records);
    output_end(&counts);
    own_file_close(&file);
    own_file_close(&second);
    unlink(path);
    unlink(other);
    free(bytes);
}

int main(void)
{
    struct request r;
    while (fread(&r, sizeof r, 1, stdin) == 1) {
        uint8_t *device = malloc(r.size);
        if (!device || fread(device, 1, r.size, stdin) != r.size)
            return 2;
        convert(&r, device);
        free(device);
    }
    return 0;
}
