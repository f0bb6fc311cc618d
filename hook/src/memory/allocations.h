/* The program's memory, followed where a kernel is run twice with one effect, or saved with its memory. */
#ifndef TUI_PROBE_ALLOCATIONS_H
#define TUI_PROBE_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"

enum allocation_kind { ALLOCATION_DEVICE, ALLOCATION_MANAGED, ALLOCATION_HOST, ALLOCATION_MAPPED };

struct allocation {
    struct allocation *next;
    enum allocation_kind kind;
    CUcontext context;
    const void *owner; /* the module or library whose variable it is; NULL for other memory */
    bool leaving; /* the context may be about to go */
    CUdeviceptr memory;
    size_t size;
};

/* Do nothing in other runs. */
void allocations_add(enum allocation_kind kind, CUdeviceptr memory, size_t size);
void allocations_add_variable(enum allocation_kind kind, CUdeviceptr memory, size_t size, const void *owner);
void allocations_remove(CUdeviceptr memory);
void allocations_remove_variables(const void *owner);
void allocations_remove_range(CUdeviceptr memory, size_t size);

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

/* Memory that was freed last, the list being locked: nothing of it is allocated now. */
const struct allocation *allocations_freed(void);

/* Another number after each change, the list being locked; never 0. */
uint64_t allocations_version(void);

/* The allocation that ADDRESS is in, the list being locked. */
const struct allocation *allocations_find(CUdeviceptr address);

void allocations_reset(void);

#endif
