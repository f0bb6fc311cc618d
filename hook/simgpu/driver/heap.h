/* An allocator over one range of addresses: first fit; where accesses are checked, new addresses first. It never touches
 * the memory that it hands out. */
#ifndef TUI_PROBE_SIMGPU_HEAP_H
#define TUI_PROBE_SIMGPU_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The driver maps allocations from some size on at multiples of that, and programs rely on it. */
enum { HEAP_ALIGNMENT = 256, HEAP_LARGE_ALIGNMENT = 2 << 20 };

/* BLOCK_RESERVED, BLOCK_MAPPED: addresses of cuMemAddressReserve that kernels do not reach yet; BLOCK_VIRTUAL: they do. */
enum block_use {
    BLOCK_FREE,
    BLOCK_DEVICE,
    BLOCK_MANAGED,
    BLOCK_HOST,
    BLOCK_VARIABLE,
    BLOCK_RESERVED,
    BLOCK_MAPPED,
    BLOCK_VIRTUAL
};

struct block {
    uint64_t address;
    uint64_t size; /* a multiple of HEAP_ALIGNMENT */
    uint64_t requested; /* bytes asked for */
    uint64_t id; /* unique in the process */
    enum block_use use;
    const void *owner; /* context or library that the block dies with */
    struct block *previous, *next;
};

struct heap {
    uint64_t address;
    uint64_t size;
    uint64_t used;
    uint64_t behind; /* the end of the last block there ever was: what is behind it was never freed */
    struct block *first; /* blocks in order of address, without gaps; no two free neighbours */
};

bool heap_init(struct heap *heap, uint64_t address, uint64_t size);

/* NULL when no free block is large enough. */
struct block *heap_allocate(struct heap *heap, uint64_t bytes, enum block_use use, const void *owner);

/* Takes a range of addresses, at `address` if that is not 0, as BLOCK_RESERVED. Returns 0 if it is not free. */
uint64_t heap_reserve(struct heap *heap, uint64_t address, uint64_t bytes);

/* Changes the use of a range whose blocks have the use `from`, to one of the last three, or BLOCK_FREE. False, with
 * nothing changed, if they have another. */
bool heap_change(struct heap *heap, uint64_t address, uint64_t bytes, enum block_use from, enum block_use to);

/* The block that contains `address` and that programs and kernels can access, or NULL. */
struct block *heap_find(const struct heap *heap, uint64_t address);

void heap_release(struct heap *heap, struct block *block);

/* Releases every block of `owner`. */
void heap_release_owner(struct heap *heap, const void *owner);

/* True if as many bytes in one piece are free. */
bool heap_has_room(const struct heap *heap, uint64_t bytes);

#endif
