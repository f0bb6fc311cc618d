#include "handles.h"

#include <stdint.h>
#include <stdlib.h>

/* Handles look like addresses, but nothing is mapped there: a program that follows one stops immediately. */
static const uintptr_t FIRST_HANDLE = 0x5e0000000000;
enum { HANDLE_STEP = 16 };

struct slot {
    enum handle_kind kind;
    void *object;
    size_t next_unused; /* of an unused slot: index + 1 of the next one, 0 at the end */
};

static struct slot *slots;
static size_t slot_count, capacity, first_unused;

static bool grow(void)
{
    size_t larger = capacity ? capacity * 2 : 64;
    struct slot *moved = realloc(slots, larger * sizeof *moved);
    if (!moved)
        return false;
    slots = moved;
    capacity = larger;
    return true;
}

void *handle_create(enum handle_kind kind, void *object)
{
    size_t index = slot_count;
    if (first_unused) {
        index = first_unused - 1;
        first_unused = slots[index].next_unused;
    } else if (slot_count == capacity && !grow()) {
        return NULL;
    } else {
        slot_count++;
    }
    slots[index] = (struct slot){.kind = kind, .object = object};
    return (void *)(FIRST_HANDLE + index * HANDLE_STEP);
}

static struct slot *slot_of(const void *handle)
{
    uintptr_t value = (uintptr_t)handle;
    if (value < FIRST_HANDLE || (value - FIRST_HANDLE) % HANDLE_STEP)
        return NULL;
    size_t index = (value - FIRST_HANDLE) / HANDLE_STEP;
    return index < slot_count ? &slots[index] : NULL;
}

void *handle_object(enum handle_kind kind, const void *handle)
{
    const struct slot *slot = slot_of(handle);
    return slot && slot->kind == kind ? slot->object : NULL;
}

void handle_destroy(void *handle)
{
    struct slot *slot = slot_of(handle);
    if (!slot || slot->kind == HANDLE_UNUSED)
        return;
    *slot = (struct slot){.next_unused = first_unused};
    first_unused = (size_t)(slot - slots) + 1;
}
