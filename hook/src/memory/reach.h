/* The memory that a launch can reach: allocations that its parameters point into, those that words in these point into,
 * and so on. The words are those at multiples of 8 bytes, in parameters of 4. A word that points into memory that the
 * driver knows and the list of allocations does not is counted as unknown. */
#ifndef TUI_PROBE_REACH_H
#define TUI_PROBE_REACH_H

#include <stddef.h>
#include <stdint.h>

#include "allocations.h"

enum { UNKNOWN_SHOWN = 16 };

struct reached {
    CUdeviceptr memory;
    size_t size;
    enum allocation_kind kind;
};

struct reach {
    struct reached *known; /* the program's allocations, by address */
    bool *is_reached; /* each of them */
    size_t *order; /* those that are reached, as they were found */
    size_t n_known, n;
    uint64_t bytes; /* of those that are reached */
    uint64_t n_unknown;
    CUdeviceptr unknown[UNKNOWN_SHOWN]; /* the first of them */
    uint64_t *seen_pages; /* that the driver was asked about */
    unsigned questions;
};

/* Copies the list, which is locked. False without memory. */
bool reach_begin(struct reach *reach, const struct allocation *allocations);

/* Adds what the words in BYTES point into; one of them is at each multiple of STEP. */
void reach_scan(struct reach *reach, const void *bytes, size_t size, size_t step);

static inline const struct reached *reach_get(const struct reach *reach, size_t i)
{
    return &reach->known[reach->order[i]];
}

void reach_end(struct reach *reach);

#endif
