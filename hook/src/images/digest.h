/* A number of 128 bits that tells contents apart. Not for adversaries: it only groups kernels of one process. */
#ifndef TUI_PROBE_DIGEST_H
#define TUI_PROBE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct digest {
    uint64_t low, high;
};

/* Of SIZE bytes; several GB/s. */
struct digest digest_of(const void *bytes, size_t size);

/* Of what DIGEST is of, followed by SIZE bytes more. */
struct digest digest_more(struct digest digest, const void *bytes, size_t size);

static inline bool digest_equal(const struct digest *a, const struct digest *b)
{
    return a->low == b->low && a->high == b->high;
}

#endif
