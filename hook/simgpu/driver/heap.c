#include "heap.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "journal.h"

/* Freed ranges of this size or more give their pages back to the system. */
enum { PAGE_BYTES = 65536 };

/* Bytes between allocations whose accesses are checked, so that one past an end is in no other one. */
enum { GUARD_BYTES = 4096 };

/* Bytes freed, and not handed out again, so that accesses to them are found. */
enum { UNUSED_BYTES = 64 << 20 };

bool heap_init(struct heap *heap, uint64_t address, uint64_t size)
{
    struct block *range = calloc(1, sizeof *range);
    if (!range)
        return false;
    *range = (struct block){.address = address, .size = size};
    *heap = (struct heap){.address = address, .size = size, .behind = address, .first = range};
    return true;
}

static bool split(struct block *block, uint64_t size)
{
    if (block->size == size)
        return true;
    struct block *remainder = calloc(1, sizeof *remainder);
    if (!remainder)
        return false;
    *remainder = (struct block){.address = block->address + size,
                                .size = block->size - size,
                                .use = block->use,
                                .previous = block,
                                .next = block->next};
    if (remainder->next)
        remainder->next->previous = remainder;
    block->next = remainder;
    block->size = size;
    return true;
}

/* Bytes before an aligned address in a free block, from `lowest` on and `guard` bytes behind the block in front. */
static uint64_t gap_before(const struct block *block, uint64_t size, uint64_t guard, uint64_t lowest)
{
    const uint64_t alignment = size >= HEAP_LARGE_ALIGNMENT ? HEAP_LARGE_ALIGNMENT : HEAP_ALIGNMENT;
    uint64_t start = block->address + (block->previous ? guard : 0);
    if (start < lowest)
        start = lowest;
    return (start + alignment - 1) / alignment * alignment - block->address;
}

/* A free block of `size` bytes from `lowest` on, cut out of a larger one. */
static struct block *take_block(struct heap *heap, uint64_t size, uint64_t guard, uint64_t lowest)
{
    for (struct block *block = heap->first; block; block = block->next) {
        if (block->use != BLOCK_FREE)
            continue;
        const uint64_t gap = gap_before(block, size, guard, lowest), behind = block->next ? guard : 0;
        if (block->size < gap || block->size - gap < size + behind)
            continue;
        if (gap) {
            if (!split(block, gap))
                return NULL;
            block = block->next;
        }
        return split(block, size) ? block : NULL;
    }
    return NULL;
}

/* A block whose accesses are checked, at an address that was never freed as long as few bytes wait for that. */
static struct block *take_checked(struct heap *heap, uint64_t size)
{
    struct block *block = NULL;
    if (heap->behind - heap->address < heap->used + UNUSED_BYTES)
        block = take_block(heap, size, GUARD_BYTES, heap->behind == heap->address ? 0 : heap->behind + GUARD_BYTES);
    return block ? block : take_block(heap, size, GUARD_BYTES, 0);
}

/* Memory of the host and variables are written without a call. */
static void note_allocation(const struct block *block)
{
    journal_add(JOURNAL_ALLOCATED, block->address, block->requested);
    if (block->use != BLOCK_DEVICE)
        journal_add(JOURNAL_INITIALISED, block->address, block->requested);
}

struct block *heap_allocate(struct heap *heap, uint64_t bytes, enum block_use use, const void *owner)
{
    static uint64_t last_id;
    if (bytes == 0 || bytes > heap->size)
        return NULL;
    uint64_t size = (bytes + HEAP_ALIGNMENT - 1) / HEAP_ALIGNMENT * HEAP_ALIGNMENT;
    struct block *block = journal_is_on() ? take_checked(heap, size) : NULL;
    if (!block)
        block = take_block(heap, size, 0, 0);
    if (!block)
        return NULL;
    block->use = use;
    block->owner = owner;
    block->requested = bytes;
    block->id = ++last_id;
    heap->used += size;
    if (heap->behind < block->address + size)
        heap->behind = block->address + size;
    note_allocation(block);
    return block;
}

bool heap_has_room(const struct heap *heap, uint64_t bytes)
{
    const struct block *block = heap->first;
    while (block && (block->use != BLOCK_FREE || block->size < bytes))
        block = block->next;
    return block;
}

/* The block of any use that contains `address`, or NULL. */
static struct block *block_at(const struct heap *heap, uint64_t address)
{
    if (address < heap->address || address - heap->address >= heap->size)
        return NULL;
    struct block *block = heap->first;
    while (block->next && block->next->address <= address)
        block = block->next;
    return block;
}

struct block *heap_find(const struct heap *heap, uint64_t address)
{
    struct block *block = block_at(heap, address);
    const bool is_accessible =
        block && block->use != BLOCK_FREE && block->use != BLOCK_RESERVED && block->use != BLOCK_MAPPED;
    return is_accessible ? block : NULL;
}

static void absorb_next(struct block *block)
{
    struct block *next = block->next;
    block->size += next->size;
    block->next = next->next;
    if (next->next)
        next->next->previous = block;
    free(next);
}

static void give_pages_back(const struct block *block)
{
    uint64_t start = (block->address + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    uint64_t end = (block->address + block->size) / PAGE_BYTES * PAGE_BYTES;
    if (end > start)
        (void)madvise((void *)start, end - start, MADV_REMOVE);
}

void heap_release(struct heap *heap, struct block *block)
{
    heap->used -= block->size;
    journal_add(JOURNAL_FREED, block->address, block->requested);
    give_pages_back(block);
    block->use = BLOCK_FREE;
    block->owner = NULL;
    if (block->next && block->next->use == BLOCK_FREE)
        absorb_next(block);
    if (block->previous && block->previous->use == BLOCK_FREE)
        absorb_next(block->previous);
}

void heap_release_owner(struct heap *heap, const void *owner)
{
    for (struct block *block = heap->first, *next; block; block = next) {
        next = block->next;
        if (block->use == BLOCK_FREE || block->owner != owner)
            continue;
        if (next && next->use == BLOCK_FREE)
            next = next->next; /* will be absorbed */
        heap_release(heap, block);
    }
}

/* True if blocks of this use cover the range. */
static bool covers(const struct block *block, uint64_t end, enum block_use use)
{
    while (block && block->use == use && block->address + block->size < end)
        block = block->next;
    return block && block->use == use;
}

/* Makes a block begin at `address`. Returns it, or NULL without memory. */
static struct block *cut_at(const struct heap *heap, uint64_t address)
{
    struct block *block = block_at(heap, address);
    if (!block || block->address == address)
        return block;
    return split(block, address - block->address) ? block->next : NULL;
}

uint64_t heap_reserve(struct heap *heap, uint64_t address, uint64_t bytes)
{
    if (address)
        return heap_change(heap, address, bytes, BLOCK_FREE, BLOCK_RESERVED) ? address : 0;
    struct block *block = take_block(heap, bytes, 0, 0);
    if (block)
        block->use = BLOCK_RESERVED;
    return block ? block->address : 0;
}

/* The journal has what kernels can access. */
static void change_use(struct heap *heap, struct block *block, enum block_use use)
{
    static uint64_t last_id = UINT64_C(1) << 32;
    if (use == BLOCK_VIRTUAL) {
        heap->used += block->size;
        journal_add(JOURNAL_ALLOCATED, block->address, block->size);
    } else if (block->use == BLOCK_VIRTUAL) {
        heap->used -= block->size;
        journal_add(JOURNAL_FREED, block->address, block->size);
        give_pages_back(block);
    }
    block->use = use;
    block->owner = NULL;
    block->requested = block->size;
    block->id = ++last_id;
}

bool heap_change(struct heap *heap, uint64_t address, uint64_t bytes, enum block_use from, enum block_use to)
{
    const uint64_t end = address + bytes;
    if (!bytes || end < address || end > heap->address + heap->size || !covers(block_at(heap, address), end, from))
        return false;
    struct block *block = cut_at(heap, address);
    if (!block || (end < heap->address + heap->size && !cut_at(heap, end)))
        return false;
    while (block && block->address < end) {
        change_use(heap, block, to);
        if (block->next && block->next->use == BLOCK_FREE && to == BLOCK_FREE)
            absorb_next(block);
        if (block->previous && block->previous->use == BLOCK_FREE && to == BLOCK_FREE)
            absorb_next(block = block->previous);
        block = block->next;
    }
    return true;
}
