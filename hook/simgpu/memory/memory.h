/* Lookup of the memory behind an address. The caller holds the driver's lock. */
#ifndef TUI_PROBE_SIMGPU_MEMORY_H
#define TUI_PROBE_SIMGPU_MEMORY_H

#include "driver.h"
#include "journal.h"

/* The block that contains `address`, in device or in pinned host memory, or NULL. */
static inline struct block *memory_block(CUdeviceptr address)
{
    struct block *block = heap_find(&driver.device_heap, address);
    return block ? block : heap_find(&driver.host_heap, address);
}

/* True if all of `bytes` from `address` are in one block; where accesses are checked, in what was asked for. */
static inline bool memory_holds(CUdeviceptr address, size_t bytes)
{
    const struct block *block = memory_block(address);
    const uint64_t size = !block ? 0 : journal_is_on() ? block->requested : block->size;
    return block && address - block->address <= size && bytes <= size - (address - block->address);
}

/* Reports that a call of the kind CALL, such as cuMemcpy, is refused since `bytes` from `address` leave the block. */
void memory_report(const char *call, CUdeviceptr address, size_t bytes);

/* True if `address` is in our mapping, allocated or not; elsewhere is ordinary host memory. */
static inline bool memory_is_ours(CUdeviceptr address)
{
    return address - driver.device_heap.address < 2 * driver.memory_bytes;
}

#endif
