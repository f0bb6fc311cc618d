#include "reach.h"

#include <stdlib.h>
#include <string.h>

#include "real.h"

/* PAGE_BITS: the driver is asked once about all addresses of a page. QUESTIONS_LIMIT bounds the time that words which
 * are no addresses take. ADDRESS_BITS: no address is larger. */
enum { PAGE_BITS = 21, SEEN_PAGES = 4096, QUESTIONS_LIMIT = 20000, ADDRESS_BITS = 48 };

static int by_address(const void *a, const void *b)
{
    const CUdeviceptr left = ((const struct reached *)a)->memory, right = ((const struct reached *)b)->memory;
    return (left > right) - (left < right);
}

bool reach_begin(struct reach *reach, const struct allocation *allocations)
{
    size_t n = 0;
    for (const struct allocation *a = allocations; a; a = a->next)
        n++;
    *reach = (struct reach){.known = calloc(n + 1, sizeof *reach->known),
                            .is_reached = calloc(n + 1, sizeof *reach->is_reached),
                            .order = calloc(n + 1, sizeof *reach->order),
                            .seen_pages = calloc(SEEN_PAGES, sizeof *reach->seen_pages)};
    if (!reach->known || !reach->is_reached || !reach->order || !reach->seen_pages)
        return false;
    for (const struct allocation *a = allocations; a; a = a->next)
        if (a->size)
            reach->known[reach->n_known++] = (struct reached){a->memory, a->size, a->kind};
    qsort(reach->known, reach->n_known, sizeof *reach->known, by_address);
    return true;
}

/* The last allocation that begins at ADDRESS or before; SIZE_MAX if there is none. */
static size_t find(const struct reach *reach, CUdeviceptr address)
{
    size_t low = 0, high = reach->n_known;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (reach->known[middle].memory <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : SIZE_MAX;
}

/* Memory without an entry in the list: imported, of the driver itself, a variable of a module. */
static void check_unknown(struct reach *reach, CUdeviceptr word)
{
    const uint64_t page = word >> PAGE_BITS;
    uint64_t *seen = &reach->seen_pages[page % SEEN_PAGES];
    int type;
    if (!page || word >> ADDRESS_BITS || *seen == page || reach->questions == QUESTIONS_LIMIT)
        return;
    *seen = page;
    reach->questions++;
    if (REAL_OR_NOT_FOUND(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) != CUDA_SUCCESS)
        return;
    if (reach->n_unknown < UNKNOWN_SHOWN)
        reach->unknown[reach->n_unknown] = word;
    reach->n_unknown++;
}

static void follow(struct reach *reach, CUdeviceptr word)
{
    const size_t i = find(reach, word);
    if (i == SIZE_MAX || word - reach->known[i].memory >= reach->known[i].size) {
        check_unknown(reach, word);
    } else if (!reach->is_reached[i]) {
        reach->is_reached[i] = true;
        reach->order[reach->n++] = i;
        reach->bytes += reach->known[i].size;
    }
}

void reach_scan(struct reach *reach, const void *bytes, size_t size, size_t step)
{
    CUdeviceptr word;
    for (size_t at = 0; size >= sizeof word && at <= size - sizeof word; at += step) {
        memcpy(&word, (const char *)bytes + at, sizeof word);
        if (word)
            follow(reach, word);
    }
}

void reach_end(struct reach *reach)
{
    free(reach->known);
    free(reach->is_reached);
    free(reach->order);
    free(reach->seen_pages);
}
