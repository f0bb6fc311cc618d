#include "handle_table.h"

#include <stdint.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 1024 };

static size_t first_slot(const struct handle_slots *slots, const void *handle)
{
    uint64_t mixed = (uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15u;
    return (size_t)(mixed >> 20) & (slots->capacity - 1);
}

void *handle_table_get(struct handle_table *table, const void *handle)
{
    struct handle_slots *slots = atomic_load_explicit(&table->slots, memory_order_acquire);
    if (!slots)
        return NULL;
    for (size_t i = first_slot(slots, handle);; i = (i + 1) & (slots->capacity - 1)) {
        const void *stored = atomic_load_explicit(&slots->slot[i].handle, memory_order_acquire);
        if (stored == handle)
            return atomic_load_explicit(&slots->slot[i].value, memory_order_acquire);
        if (!stored)
            return NULL;
    }
}

/* The slot of this handle, else the first dead one of its chain, else the empty one at its end. */
static struct handle_slot *slot_for(struct handle_slots *slots, const void *handle)
{
    struct handle_slot *dead = NULL;
    for (size_t i = first_slot(slots, handle);; i = (i + 1) & (slots->capacity - 1)) {
        struct handle_slot *slot = &slots->slot[i];
        const void *stored = atomic_load_explicit(&slot->handle, memory_order_relaxed);
        if (stored == handle)
            return slot;
        if (!stored)
            return dead ? dead : slot;
        if (!dead && !atomic_load_explicit(&slot->value, memory_order_relaxed))
            dead = slot;
    }
}

static bool store(struct handle_slots *slots, const void *handle, void *value)
{
    struct handle_slot *slot = slot_for(slots, handle);
    bool fresh = !atomic_load_explicit(&slot->handle, memory_order_relaxed);
    atomic_store_explicit(&slot->handle, handle, memory_order_release);
    atomic_store_explicit(&slot->value, value, memory_order_release);
    return fresh;
}

/* Builds a table with room; all outgrown ones together are smaller than it. */
static bool grow(struct handle_table *table)
{
    struct handle_slots *old = atomic_load_explicit(&table->slots, memory_order_relaxed);
    size_t capacity = old ? old->capacity * 2 : FIRST_CAPACITY;
    struct handle_slots *slots = calloc(1, sizeof *slots + capacity * sizeof slots->slot[0]);
    if (!slots)
        return false;
    slots->older = old;
    slots->capacity = capacity;
    table->used = 0;
    for (size_t i = 0; old && i < old->capacity; i++) {
        void *value = atomic_load_explicit(&old->slot[i].value, memory_order_relaxed);
        if (value)
            table->used += store(slots, atomic_load_explicit(&old->slot[i].handle, memory_order_relaxed), value);
    }
    atomic_store_explicit(&table->slots, slots, memory_order_release);
    return true;
}

bool handle_table_put(struct handle_table *table, const void *handle, void *value)
{
    struct handle_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    if (!handle)
        return false;
    if ((!slots || table->used + 1 > slots->capacity / 4 * 3) && !grow(table))
        return false;
    table->used += store(atomic_load_explicit(&table->slots, memory_order_relaxed), handle, value);
    return true;
}

/* A dead slot before an empty one is at the end of every chain that it is in: it becomes empty, and so the one
 * before. */
static void empty_dead_slots(struct handle_table *table, struct handle_slots *slots)
{
    const size_t mask = slots->capacity - 1;
    for (size_t i = 2 * slots->capacity; i-- > 0;) { /* twice: a chain may continue at the beginning */
        struct handle_slot *slot = &slots->slot[i & mask];
        const struct handle_slot *next = &slots->slot[(i + 1) & mask];
        if (atomic_load_explicit(&slot->handle, memory_order_relaxed) &&
            !atomic_load_explicit(&slot->value, memory_order_relaxed) &&
            !atomic_load_explicit(&next->handle, memory_order_relaxed)) {
            atomic_store_explicit(&slot->handle, NULL, memory_order_release);
            table->used--;
        }
    }
}

void handle_table_remove(struct handle_table *table, bool (*matches)(const void *value, const void *wanted),
                         const void *wanted)
{
    struct handle_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    for (size_t i = 0; slots && i < slots->capacity; i++) {
        void *value = atomic_load_explicit(&slots->slot[i].value, memory_order_relaxed);
        if (value && matches(value, wanted))
            atomic_store_explicit(&slots->slot[i].value, NULL, memory_order_release);
    }
    if (slots)
        empty_dead_slots(table, slots);
}

void handle_table_drop(struct handle_table *table, const void *handle, const void *value)
{
    struct handle_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    struct handle_slot *slot = slots ? slot_for(slots, handle) : NULL;
    if (slot && atomic_load_explicit(&slot->handle, memory_order_relaxed) == handle &&
        atomic_load_explicit(&slot->value, memory_order_relaxed) == value)
        atomic_store_explicit(&slot->value, NULL, memory_order_release);
}
