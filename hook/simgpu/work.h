/* What a node of a graph does when it runs, with copies of all that it needs. */
#ifndef TUI_PROBE_SIMGPU_WORK_H
#define TUI_PROBE_SIMGPU_WORK_H

#include "driver.h"
#include "graph_abi.h"

struct graph;

/* A launch whose parameters are packed, and so may happen at any later time. */
struct kernel_call {
    const void *function;
    unsigned grid[3], block[3], shared_bytes;
    bool cooperative;
    unsigned cluster[3];
    uint8_t *packed;
    size_t packed_bytes;
};

struct work {
    enum node_type type;
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

/* What a program of the older interface means. */
CUkernelNode kernel_node_upgraded(const CUkernelNode *older);

/* Of a kernel; `parameters` and `extra` are the program's, and copied. The caller holds the driver's lock. */
CUresult work_of_kernel(struct work *work, const CUkernelNode *node, bool cooperative);

/* A linear copy, as work. */
struct work work_of_copy(CUdeviceptr target, CUdeviceptr source, size_t bytes);

/* The same once more; false out of memory. The caller holds the driver's lock, in all that follow but work_run. */
bool work_copy(struct work *to, const struct work *from);
void work_free(struct work *work);

/* Runs anything but a child graph; the lock is not held. */
CUresult work_run(const struct work *work);

#endif
