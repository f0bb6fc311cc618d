/* Reduces maps as the hook does when it saves them. On standard input, again and again: u32 level of the map, 1 if it is
 * marked, bytes of a record, blocks, threads per block, bytes that are seen at a time, size of the text, of the records;
 * the text of a reduce line; the records as on the device. Answers u32 size and what is left; 0xffffffff if the text is
 * not understood, 0 if nothing would be saved by it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "convert.h"
#include "own_file.h"

struct request {
    uint32_t level, marked, record, blocks, threads, window, text, size;
};

static const void *read_memory(void *argument, size_t offset, size_t size)
{
    (void)size;
    return (const uint8_t *)argument + offset;
}

static void answer(const void *bytes, uint32_t size)
{
    fwrite(&size, sizeof size, 1, stdout);
    if (size != UINT32_MAX)
        fwrite(bytes, 1, size, stdout);
}

static void reduce(const struct request *r, const char *text, uint8_t *device)
{
    struct map map = {.level = (enum map_level)r->level,
                      .layout = r->marked ? MAP_MARKED : MAP_PLAIN,
                      .record = r->record,
                      .cap = 1,
                      .reduction = reduction_parse(text, r->record)};
    struct extent extent = {.blocks = r->blocks, .threads = r->threads, .warps = (r->threads + 31) / 32};
    struct result_source source = {read_memory, device, r->window};
    struct output second;
    if (!map.reduction || !layout_reduces(&map, &extent)) {
        answer("", map.reduction ? 0 : UINT32_MAX);
        free(map.reduction);
        return;
    }
    const size_t size = (size_t)layout_reduced(&map, &extent);
    char *bytes = malloc(size), path[] = "/tmp/reduced.XXXXXX";
    struct own_file file;
    const bool opened = own_file_take(&file, mkstemp(path));
    struct conversion conversion = {
        .map = &map, .cap = 1, .file_cap = 1, .extent = extent, .source = &source, .second = &second};
    if (!bytes || !opened || !output_begin(&second, &file, 0, 64) || !convert_map(&conversion) ||
        !output_flush(&second) || lseek(file.number, 0, SEEK_END) != (off_t)size ||
        pread(file.number, bytes, size, 0) != (ssize_t)size)
        exit(3);
    answer(bytes, (uint32_t)size);
    output_end(&second);
    own_file_close(&file);
    unlink(path);
    free(bytes);
    free(map.reduction);
}

int main(void)
{
    struct request r;
    while (fread(&r, sizeof r, 1, stdin) == 1) {
        char *text = calloc(1, r.text + 1);
        uint8_t *device = malloc(r.size);
        if (!text || !device || fread(text, 1, r.text, stdin) != r.text || fread(device, 1, r.size, stdin) != r.size)
            return 2;
        reduce(&r, text, device);
        free(text);
        free(device);
    }
    return 0;
}
