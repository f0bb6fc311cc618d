/* Launches whose arguments are checked and packed apart from being run. */
#ifndef TUI_PROBE_SIMGPU_LAUNCH_H
#define TUI_PROBE_SIMGPU_LAUNCH_H

#include "work.h"

/* A launch as the program asks for it. */
struct launch {
    const void *function;
    unsigned grid[3], block[3];
    unsigned dynamic_shared_bytes;
    CUstream stream;
    bool cooperative;
    unsigned cluster[3]; /* all 0: none but the kernel's own */
    void **parameters, **extra;
};

/* Checks and packs it; the caller holds the driver's lock, and frees `call->packed`. */
CUresult launch_pack(const struct launch *launch, struct kernel_call *call);

/* The launch of a node of a graph; `parameters` and `extra` are the program's, and copied. The caller holds the
 * driver's lock. */
CUresult work_of_kernel(struct work *work, const CUkernelNode *node, bool cooperative);

/* Converts parameters of the older interface. */
CUkernelNode kernel_node_upgraded(const CUkernelNode *older);

#endif
