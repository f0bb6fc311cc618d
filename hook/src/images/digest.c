#include "digest.h"

#include <string.h>

/* Odd numbers with no pattern: fractions of pi. */
static const uint64_t keys[] = {0x243f6a8885a308d3, 0x13198a2e03707345, 0xa4093822299f31d1, 0x082efa98ec4e6c89};

/* Both halves of the product of two words, folded. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    const __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* 16 bytes; a lane keeps what it was given next to the product, which may be 0. */
static void take(struct digest *digest, const uint8_t *bytes)
{
    uint64_t first, second;
    memcpy(&first, bytes, sizeof first);
    memcpy(&second, bytes + sizeof first, sizeof second);
    digest->low = mix(digest->low ^ first ^ keys[0], second ^ keys[1]) + (digest->low << 1 | digest->low >> 63) + first;
    digest->high =
        mix(digest->high ^ second ^ keys[2], first ^ keys[3]) + (digest->high << 1 | digest->high >> 63) + second;
}

struct digest digest_more(struct digest digest, const void *bytes, size_t size)
{
    enum { STEP = 16 };
    const uint8_t *at = bytes;
    uint8_t rest[2 * STEP] = {0};
    const size_t full_steps = size / STEP * STEP;
    for (size_t i = 0; i < full_steps; i += STEP)
        take(&digest, at + i);
    memcpy(rest, at + full_steps, size - full_steps);
    memcpy(rest + STEP, &(uint64_t){size}, sizeof(uint64_t));
    take(&digest, rest);
    take(&digest, rest + STEP);
    return digest;
}

struct digest digest_of(const void *bytes, size_t size)
{
    return digest_more((struct digest){keys[1], keys[3]}, bytes, size);
}
