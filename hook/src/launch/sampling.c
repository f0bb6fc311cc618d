#include "sampling.h"

#include <stddef.h>
#include <stdlib.h>

#include "reasons.h"

/* Kernels number the blocks with 31 bits. */
#define MOST_BLOCKS (1ULL << 31)

/* From here on a step is odd: an even one would meet the same columns of many grids over and over. */
enum { LONG_STEP = 16 };

static const char *number(const char *text, uint64_t *value)
{
    char *end;
    if (!text || *text < '0' || *text > '9')
        return NULL;
    *value = strtoull(text, &end, 10);
    return end;
}

bool sampling_parse(const char *text, struct sampling *sampling)
{
    uint64_t first = 0, last = 0;
    enum sampling_kind kind = SAMPLE_ALL;
    const char *end = number(text, &first);
    if (end && !*end && first) {
        *sampling = (struct sampling){SAMPLE_SPREAD, 0, first};
        return true;
    }
    const char *after_last = end && *end ? number(end + 1, &last) : NULL;
    if (!after_last || *after_last)
        return false;
    if (*end == '/' && first == 1 && last)
        kind = SAMPLE_ONE_IN;
    else if (*end == '-' && first <= last)
        kind = SAMPLE_RANGE;
    if (kind != SAMPLE_ALL)
        *sampling = (struct sampling){kind, first, last};
    return kind != SAMPLE_ALL;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct sampled sampling_of(const struct sampling *sampling, uint64_t blocks)
{
    const uint64_t first = sampling->first, last = sampling->last;
    switch (sampling->kind) {
    case SAMPLE_ONE_IN: {
        uint64_t step = least(last, MOST_BLOCKS); /* of more blocks than any grid's it is the first one either way */
        return (struct sampled){0, step, (blocks + step - 1) / step};
    }
    case SAMPLE_RANGE:
        return (struct sampled){first, 1, first < blocks ? least(last, blocks - 1) - first + 1 : 0};
    case SAMPLE_SPREAD: {
        uint64_t step = blocks > last ? blocks / last : 1;
        step -= step >= LONG_STEP && step % 2 == 0;
        return (struct sampled){0, step, least(last, blocks)};
    }
    default:
        return (struct sampled){0, 1, blocks};
    }
}

const struct reason *sampling_refuses(const struct sampling *sampling, uint64_t blocks)
{
    if (sampling->kind == SAMPLE_ALL)
        return NULL;
    if (blocks >= MOST_BLOCKS)
        return reason(GRID_TOO_LARGE);
    return sampling_of(sampling, blocks).count ? NULL : reason(NOT_IN_SAMPLE);
}

void sampling_parameters(const struct sampled *sampled, uint64_t parameters[SAMPLING_PARAMETERS])
{
    const uint64_t reciprocal = (MOST_BLOCKS + sampled->step - 1) / sampled->step;
    parameters[0] = sampled->first | sampled->count << 32;
    parameters[1] = sampled->step | reciprocal << 32;
}
