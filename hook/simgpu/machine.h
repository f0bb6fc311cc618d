/* The simulated GPU: a small machine of compute capability 8.0. The per-SM limits are those of NVIDIA's table for
 * compute capability 8.0 (CUDA C++ programming guide, "Compute Capabilities"), except that no shared memory is reserved
 * for the system; the number of SMs and the clock are ours. The server is told what it needs to know of this. */
#ifndef TUI_PROBE_SIMGPU_MACHINE_H
#define TUI_PROBE_SIMGPU_MACHINE_H

enum {
    CAPABILITY_MAJOR = 8,
    CAPABILITY_MINOR = 0,
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
    SM_SHARED_BYTES = 164 * 1024,
    BLOCK_SHARED_BYTES = 48 * 1024,        /* without asking */
    BLOCK_SHARED_BYTES_OPTIN = 163 * 1024, /* FUNCTION_MAX_DYNAMIC_SHARED set */
    CONSTANT_BYTES = 64 * 1024,
    L2_CACHE_BYTES = 4 * 1024 * 1024,
    TEXTURE_PITCH_BYTES = 512,
};

#endif
