/* Work of a node of a graph, with copies of all that it needs to run. */
#ifndef TUI_PROBE_SIMGPU_WORK_H
#define TUI_PROBE_SIMGPU_WORK_H

#include "driver.h"
#include "graph_abi.h"

struct graph;
struct work;

/* A launch whose parameters are packed, and so may happen at any later time. */
struct kernel_call {
    const void *function;
    unsigned grid[3], block[3], shared_bytes;
    bool cooperative;
    unsigned cluster[3];
    uint8_t *packed;
    size_t packed_bytes;
};

/* One kind of work. Each is defined where its work is done, above graphs and captures, which know only this table. */
struct work_kind {
    enum node_type type;
    CUresult (*run)(const struct work *work); /* without the driver's lock; NULL: nothing happens */
    bool (*own)(struct work *work);           /* gives a plain copy its own memory; NULL: it needs none */
    void (*release)(struct work *work);       /* NULL: it has no memory */
};

struct work {
    const struct work_kind *kind;
    union {
        struct kernel_call kernel;
        CUmemcpy3D copy;
        CUfillNode fill;
        CUhostNode host;
        CUevent event;
        CUdeviceptr memory;
        struct graph *child;
    } of;
};

/* Kinds that do nothing: everything runs in order, so there is nothing to wait for, and memory stays (memory.c). */
extern const struct work_kind empty_work, event_wait_work, memory_work, memory_free_work;

/* The same once more; false out of memory. The caller holds the driver's lock. */
bool work_copy(struct work *to, const struct work *from);

/* The caller holds the driver's lock where the work is a graph. */
void work_free(struct work *work);

/* The lock is not held. */
CUresult work_run(const struct work *work);

#endif
