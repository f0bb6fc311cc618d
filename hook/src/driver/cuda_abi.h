/* The part of the CUDA driver's binary interface that the hook touches, declared
 * here so that it builds without CUDA headers and against any driver. */
#ifndef TUI_PROBE_CUDA_ABI_H
#define TUI_PROBE_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUfunc_st *CUfunction;
typedef struct CUkern_st *CUkernel;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmempool_st *CUmemoryPool;
typedef struct CUgreenCtx_st *CUgreenCtx;

typedef struct {
    char reserved[64];
} CUipcHandle;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
    CUDA_ERROR_MISALIGNED_ADDRESS = 716,
    CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
    CUDA_ERROR_INVALID_PC = 718,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
    CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
    CUDA_ERROR_CAPTURED_EVENT = 907
};

enum {
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH = 11,
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
    CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15
};

enum {
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = 88
};

enum { CU_TENSOR_MAP_BYTES = 128 }; /* aligned to 64 */

#define CU_STREAM_PER_THREAD ((CUstream)0x2)
#define CU_STREAM_NON_BLOCKING 1u
#define CU_STREAM_CAPTURE_STATUS_NONE 0
#define CU_STREAM_CAPTURE_STATUS_ACTIVE 1
#define CU_STREAM_CAPTURE_MODE_RELAXED 2
#define CU_POINTER_ATTRIBUTE_MEMORY_TYPE 2
#define CU_EVENT_DEFAULT 0u
#define CU_EVENT_BLOCKING_SYNC 1u
#define CU_EVENT_DISABLE_TIMING 2u
#define CU_MEMHOSTALLOC_PORTABLE 1u
#define CU_MEMHOSTALLOC_DEVICEMAP 2u
#define CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM 2u
#define CU_LAUNCH_ATTRIBUTE_COOPERATIVE 2
#define CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION 4
#define CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE 5
#define CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION 6
#define CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT 7
#define CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP 9
#define CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN 10
#define CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION 11
#define CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT 14
#define CU_LIMIT_STACK_SIZE 0
#define CU_LIMIT_MALLOC_HEAP_SIZE 2
#define CU_DEV_RESOURCE_TYPE_SM 1
#define CU_LAUNCH_PARAM_END ((void *)0x0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)0x1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)0x2)

typedef struct {
    uint32_t id;
    uint32_t pad;
    union {
        char bytes[64];
        int cooperative;
        int programmatic;
        uint32_t cluster[3];
        uint64_t align;
    } value;
} CUlaunchAttribute;

typedef struct {
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned int numAttrs;
} CUlaunchConfig;

enum graph_node_type {
    CU_GRAPH_NODE_KERNEL = 0,
    CU_GRAPH_NODE_MEMCPY = 1,
    CU_GRAPH_NODE_MEMSET = 2,
    CU_GRAPH_NODE_HOST = 3,
    CU_GRAPH_NODE_GRAPH = 4,
    CU_GRAPH_NODE_EMPTY = 5,
    CU_GRAPH_NODE_WAIT_EVENT = 6,
    CU_GRAPH_NODE_EVENT_RECORD = 7,
    CU_GRAPH_NODE_EXT_SEMAS_SIGNAL = 8,
    CU_GRAPH_NODE_EXT_SEMAS_WAIT = 9,
    CU_GRAPH_NODE_MEM_ALLOC = 10,
    CU_GRAPH_NODE_MEM_FREE = 11,
    CU_GRAPH_NODE_BATCH_MEM_OP = 12,
    CU_GRAPH_NODE_CONDITIONAL = 13
};

#define CU_GRAPH_INSTANTIATE_UPLOAD 2ull
#define CU_GRAPH_INSTANTIATE_DEVICE_LAUNCH 4ull

/* Structures of older programs end before KERN. */
typedef struct {
    CUfunction func;
    unsigned int grid[3], block[3], sharedMemBytes;
    void **kernelParams;
    void **extra;
    CUkernel kern; /* read if there is no FUNC */
    CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct {
    CUdeviceptr dst;
    size_t pitch;
    unsigned int value, elementSize;
    size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;

typedef struct {
    void *fn, *userData;
} CUDA_HOST_NODE_PARAMS;

/* The hook reads only its extent. */
typedef struct {
    unsigned char ends[176];
    size_t width, height, depth;
} CUDA_MEMCPY3D;

typedef struct {
    uint64_t flags;
    CUstream upload;
    CUgraphNode error_node;
    int result;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

/* Of a node of any type. */
typedef struct {
    int type;
    int reserved[3];
    union {
        long long bytes[29];
        CUDA_KERNEL_NODE_PARAMS kernel;
    } of;
    long long reserved_too;
} CUgraphNodeParams;

/* Device resources of a context; newer drivers may fill more of it. */
typedef struct {
    int type;
    unsigned char internal[92];
    unsigned int multiprocessors;
    unsigned char rest[412];
} CUdevResource;

_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS) == 72, "as in the driver");
_Static_assert(sizeof(CUDA_MEMCPY3D) == 200, "as in the driver");
_Static_assert(sizeof(CUgraphNodeParams) == 256, "as in the driver");
_Static_assert(offsetof(CUdevResource, multiprocessors) == 96, "as in the driver");
_Static_assert(sizeof(CUlaunchAttribute) == 72, "launch attributes are 72 bytes in the driver");
_Static_assert(sizeof(CUlaunchConfig) == 56, "launch configurations are 56 bytes in the driver");

#define TUI_PROBE_API __attribute__((visibility("default")))
#define CUDA_FUNCTION(name, ...) TUI_PROBE_API CUresult name(__VA_ARGS__);
#include "driver_functions.def"
#undef CUDA_FUNCTION

#endif
