/* The part of the CUDA driver API's binary interface that the simulated driver speaks: types, numbers, structures.
 * Facts of the interface only, so that it builds without CUDA's headers. */
#ifndef TUI_PROBE_SIMGPU_CUDA_ABI_H
#define TUI_PROBE_SIMGPU_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef void *CUcontext, *CUmodule, *CUlibrary, *CUfunction, *CUkernel, *CUstream, *CUevent;
typedef void *CUgraph, *CUgraphNode, *CUgraphExec;

typedef enum {
#define CUDA_RESULT(name, value, text) name = value,
#include "results.def"
#undef CUDA_RESULT
} CUresult;

typedef struct {
    unsigned char bytes[16];
} CUuuid;

typedef struct {
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned shared_bytes;
    CUstream stream;
    struct CUlaunchAttribute *attributes;
    unsigned attribute_count;
} CUlaunchConfig;

struct CUlaunchAttribute {
    unsigned id;
    unsigned padding;
    union {
        unsigned char bytes[64];
        int cooperative;
        struct {
            unsigned x, y, z;
        } cluster;
    } value;
};

enum { LAUNCH_ATTRIBUTE_COOPERATIVE = 2, LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4 };

/* Elements of the `extra` argument of a launch. */
#define LAUNCH_PARAM_END ((void *)0)
#define LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define LAUNCH_PARAM_BUFFER_SIZE ((void *)2)

/* Memory of cuMemCreate, and the devices that may access it. */
typedef struct {
    int type, id;
} CUmemLocation;

typedef struct {
    int type;
    int handle_types;
    CUmemLocation location;
    void *windows_data;
    unsigned char flags[8];
} CUmemAllocationProp;

typedef struct {
    CUmemLocation location;
    int flags;
} CUmemAccessDesc;

enum { LOCATION_DEVICE = 1, ALLOCATION_PINNED = 1, ACCESS_READ_WRITE = 3 };

enum { MEMORY_HOST = 1, MEMORY_DEVICE = 2, MEMORY_ARRAY = 3, MEMORY_UNIFIED = 4 };

typedef struct {
    size_t source_x, source_y;
    unsigned source_type;
    const void *source_host;
    CUdeviceptr source_device;
    void *source_array;
    size_t source_pitch;
    size_t target_x, target_y;
    unsigned target_type;
    void *target_host;
    CUdeviceptr target_device;
    void *target_array;
    size_t target_pitch;
    size_t width, height;
} CUmemcpy2D;

typedef struct {
    size_t source_x, source_y, source_z, source_level;
    unsigned source_type;
    const void *source_host;
    CUdeviceptr source_device;
    void *source_array, *source_reserved;
    size_t source_pitch, source_height;
    size_t target_x, target_y, target_z, target_level;
    unsigned target_type;
    void *target_host;
    CUdeviceptr target_device;
    void *target_array, *target_reserved;
    size_t target_pitch, target_height;
    size_t width, height, depth;
} CUmemcpy3D;

#define STREAM_LEGACY ((CUstream)1)
#define STREAM_PER_THREAD ((CUstream)2)

enum { EVENT_DISABLE_TIMING = 2 };
enum { JIT_INFO_LOG_BYTES = 4, JIT_ERROR_LOG_BUFFER = 5, JIT_ERROR_LOG_BYTES = 6 };

enum function_attribute {
    FUNCTION_MAX_THREADS = 0,
    FUNCTION_SHARED_BYTES,
    FUNCTION_CONST_BYTES,
    FUNCTION_LOCAL_BYTES,
    FUNCTION_REGISTERS,
    FUNCTION_PTX_VERSION,
    FUNCTION_BINARY_VERSION,
    FUNCTION_CACHE_MODE,
    FUNCTION_MAX_DYNAMIC_SHARED,
    FUNCTION_SHARED_CARVEOUT,
    FUNCTION_CLUSTER_MUST_BE_SET,
    FUNCTION_CLUSTER_WIDTH,
    FUNCTION_CLUSTER_HEIGHT,
    FUNCTION_CLUSTER_DEPTH,
    FUNCTION_NON_PORTABLE_CLUSTER,
    FUNCTION_CLUSTER_POLICY,
};

enum pointer_attribute {
    POINTER_CONTEXT = 1,
    POINTER_MEMORY_TYPE = 2,
    POINTER_DEVICE_POINTER = 3,
    POINTER_HOST_POINTER = 4,
    POINTER_SYNC_MEMOPS = 6,
    POINTER_BUFFER_ID = 7,
    POINTER_IS_MANAGED = 8,
    POINTER_DEVICE_ORDINAL = 9,
    POINTER_RANGE_START = 11,
    POINTER_RANGE_SIZE = 12,
    POINTER_MAPPED = 13,
};

#endif
