/* The program's memory, followed in benchmark mode so that a kernel can be run twice with one effect. */
#ifndef TUI_PROBE_ALLOCATIONS_H
#define TUI_PROBE_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "cuda_abi.h"

enum allocation_kind { ALLOCATION_DEVICE, ALLOCATION_MANAGED, ALLOCATION_HOST };

struct allocation {
    struct allocation *next;
    enum allocation_kind kind;
    CUcontext context;
    bool leaving; /* the context may be about to go */
    CUdeviceptr memory;
    size_t size;
};

/* Do nothing outside benchmark mode. */
void allocations_add(enum allocation_kind kind, CUdeviceptr memory, size_t size);
void allocations_remove(CUdeviceptr memory);

/* CONTEXT may be about to go: what is allocated from here on under its handle is another's. */
void allocations_leave(CUcontext context);

/* It is GONE, and what was allocated in it; or it is not. */
void allocations_settle(CUcontext context, bool gone);

/* The program maps memory itself: what a kernel can reach is no longer known. */
void allocations_note_mapping(void);
bool allocations_any_mapping(void);

/* The list is locked between these two. */
const struct allocation *allocations_lock(void);
void allocations_unlock(void);

/* The allocation that ADDRESS is in, the list being locked. */
const struct allocation *allocations_find(CUdeviceptr address);

void allocations_reset(void);

#endif
