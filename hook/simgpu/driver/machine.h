/* The simulated GPU: a small machine of compute capability 8.0, or 9.0 where TUI_PROBE_SIM_ARCH says so. The per-SM
 * limits are those of NVIDIA's table for these (CUDA C++ programming guide, "Compute Capabilities"), except that no
 * shared memory is reserved for the system; the number of SMs and the clock are ours. The server is given what it needs
 * to know of this. */
#ifndef TUI_PROBE_SIMGPU_MACHINE_H
#define TUI_PROBE_SIMGPU_MACHINE_H

#include <stdbool.h>

enum {
    DRIVER_VERSION = 13000,
    DEFAULT_SM_COUNT = 8, /* TUI_PROBE_SIM_SMS */
    MAX_SM_COUNT = 1024,
    CLOCK_KHZ = 1000000,
    WARP_LANES = 32,
    BLOCK_MAX_THREADS = 1024,
    BLOCK_MAX_X = 1024,
    BLOCK_MAX_Y = 1024,
    BLOCK_MAX_Z = 64,
    GRID_MAX_X = 2147483647,
    GRID_MAX_YZ = 65535,
    SM_MAX_THREADS = 2048,
    SM_MAX_BLOCKS = 32,
    SM_REGISTERS = 65536,
    BLOCK_SHARED_BYTES = 48 * 1024, /* without asking */
    CONSTANT_BYTES = 64 * 1024,
    L2_CACHE_BYTES = 4 * 1024 * 1024,
    TEXTURE_PITCH_BYTES = 512,
    CLUSTER_MAX_BLOCKS = 8,
    CLUSTER_MAX_BLOCKS_NON_PORTABLE = 16, /* FUNCTION_NON_PORTABLE_CLUSTER set */
};

/* The differences between the GPUs that are simulated. */
struct generation {
    const char *name; /* as nvcc calls it */
    int major, minor;
    int sm_shared_bytes;
    int block_shared_bytes; /* FUNCTION_MAX_DYNAMIC_SHARED set */
    bool has_clusters;
};

/* The one of this name, or NULL. */
const struct generation *generation_named(const char *name);

#endif
