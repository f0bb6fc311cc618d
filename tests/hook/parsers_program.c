/* Gives the hook's parsers what comes on standard input: u32 kind (0 image, 1 kernel.info, 2 sample, 3 machine code), u32 size, bytes;
 * again and again. Says what it made of each. Each input is in a block of exactly its size, for a sanitizer to guard. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"
#include "kernel_info.h"
#include "sampling.h"
#include "settings.h"

static void image(const uint8_t *bytes, size_t size)
{
    struct image *image = image_capture(bytes, size, &(struct origin){0});
    uint64_t sum = 0;
    for (size_t i = 0; i < image->ptx_size; i++)
        sum += image->ptx[i];
    printf("%s %zu %zu %llu\n", image_type_name(image->type), image->size, image->ptx_size, (unsigned long long)sum);
    image_release(image);
}

static void kernel_info(const uint8_t *bytes, size_t size)
{
    char path[] = "/tmp/kernel.info.XXXXXX";
    int file = mkstemp(path);
    FILE *stream = file < 0 ? NULL : fdopen(file, "w");
    struct kernel kernel = {.name = (char *)"add"};
    struct kernel_probe probe = {.kernel = &kernel};
    if (!stream)
        exit(3);
    fwrite(bytes, 1, size, stream);
    fclose(stream);
    const struct reason *reason = kernel_info_read(path, &probe);
    remove(path);
    printf("%s %zu %zu %zu", reason ? "refused" : "read", kernel.n_parameters, probe.n_maps, probe.n_globals);
    for (size_t i = 0; i < probe.n_patches; i++) {
        const struct patch *patch = &probe.patches[i];
        printf(" %d:%llu:%lld:%s", patch->kind, (unsigned long long)patch->offset, (long long)patch->addend,
               patch->variable);
        free(patch->variable);
    }
    for (size_t i = 0; i < probe.n_constants; i++) {
        printf(" %s:%zu", probe.constants[i].variable, probe.constants[i].size);
        free(probe.constants[i].variable);
    }
    printf("%s\n", probe.way == WAY_GRAFT ? " graft" : "");
    free(probe.patches);
    free(probe.constants);
    for (size_t i = 0; i < probe.n_globals; i++)
        free(probe.globals[i]);
    free(probe.globals);
    free(probe.maps);
}

/* A compute capability, u32, and an image: what would be written of it for a device of that kind. */
static void machine_code(const uint8_t *bytes, size_t size)
{
    uint32_t device = 0;
    if (size < sizeof device)
        exit(4);
    memcpy(&device, bytes, sizeof device);
    struct image *image = image_capture(bytes + sizeof device, size - sizeof device, &(struct origin){0});
    struct image_part part = {0};
    uint64_t sum = 0;
    const struct reason *reason =
        image->code ? image_part_make(image, image->ptx ? device | FATBIN_PTX : device, &part) : NULL;
    for (size_t i = 0; i < part.size; i++)
        sum += part.bytes[i];
    printf("%d %s %zu %llu %zu\n", image_ptx_for(image, device), reason ? "refused" : "made", part.size,
           (unsigned long long)sum, image_most(image));
    image_part_free(&part);
    image_release(image);
}

/* "SPEC BLOCKS": which blocks of a grid of that many. */
static void sample(const uint8_t *bytes, size_t size)
{
    char *text = strndup((const char *)bytes, size), *blocks = strrchr(text, ' ');
    struct sampling sampling = {.kind = SAMPLE_ALL};
    if (blocks)
        *blocks++ = '\0';
    bool read = sampling_parse(text, &sampling);
    struct sampled sampled = sampling_of(&sampling, blocks ? strtoull(blocks, NULL, 10) : 0);
    printf("%s %llu %llu %llu\n", read ? "read" : "refused", (unsigned long long)sampled.first,
           (unsigned long long)sampled.step, (unsigned long long)sampled.count);
    free(text);
}

int main(void)
{
    settings.max_host_memory = SIZE_MAX;
    uint32_t header[2];
    while (fread(header, sizeof header, 1, stdin) == 1) {
        uint8_t *bytes = malloc(header[1]);
        if (!bytes || fread(bytes, 1, header[1], stdin) != header[1])
            return 2;
        if (header[0] == 3)
            machine_code(bytes, header[1]);
        else if (header[0] == 2)
            sample(bytes, header[1]);
        else if (header[0])
            kernel_info(bytes, header[1]);
        else
            image(bytes, header[1]);
        free(bytes);
    }
    return 0;
}
