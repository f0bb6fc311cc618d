/* The structures that tell what a node of a graph does, as the driver's interface has them. */
#ifndef TUI_PROBE_SIMGPU_GRAPH_ABI_H
#define TUI_PROBE_SIMGPU_GRAPH_ABI_H

#include "cuda_abi.h"

enum node_type {
    NODE_KERNEL = 0,
    NODE_COPY = 1,
    NODE_FILL = 2,
    NODE_HOST = 3,
    NODE_CHILD = 4,
    NODE_EMPTY = 5,
    NODE_EVENT_WAIT = 6,
    NODE_EVENT_RECORD = 7,
    NODE_MEMORY = 10,
    NODE_MEMORY_FREE = 11,
};

/* Structures of older programs end with `extra`. */
typedef struct {
    CUfunction function;
    unsigned grid[3], block[3], shared_bytes;
    void **parameters, **extra;
    CUkernel kernel; /* if there is no function */
    CUcontext context;
} CUkernelNode;

typedef struct {
    CUdeviceptr address;
    size_t pitch;
    unsigned value, value_bytes;
    size_t width, height;
} CUfillNode;

typedef void host_function(void *data);

typedef struct {
    host_function *function;
    void *data;
} CUhostNode;

typedef struct {
    unsigned char properties[88];
    const void *accesses;
    size_t access_count, bytes;
    CUdeviceptr address; /* the answer */
} CUmemoryNode;

typedef struct {
    int flags, reserved;
    CUcontext context;
    CUmemcpy3D copy;
} CUcopyNode;

/* Any node, for cuGraphAddNode. */
typedef struct {
    enum node_type type;
    int reserved[3];
    union {
        long long bytes[29];
        CUkernelNode kernel;
        CUcopyNode copy;
        CUfillNode fill;
        CUhostNode host;
        CUgraph child;
        CUevent event;
    } of;
    long long reserved_too;
} CUanyNode;

typedef struct {
    uint64_t flags;
    CUstream upload;
    CUgraphNode error_node;
    int result;
} CUinstantiation;

typedef struct {
    int result;
    CUgraphNode error_node, error_from_node;
} CUupdateResult;

enum { INSTANTIATE_AUTO_FREE = 1, INSTANTIATE_UPLOAD = 2, INSTANTIATE_DEVICE = 4, INSTANTIATE_PRIORITY = 8 };
enum { UPDATE_SUCCESS = 0, UPDATE_TOPOLOGY_CHANGED = 2, UPDATE_TYPE_CHANGED = 3 };

_Static_assert(sizeof(CUkernelNode) == 72, "as in the driver");
_Static_assert(sizeof(CUmemcpy3D) == 200, "as in the driver");
_Static_assert(sizeof(CUanyNode) == 256, "as in the driver");
_Static_assert(sizeof(CUmemoryNode) == 120, "as in the driver");

#endif
