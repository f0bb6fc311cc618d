/* The state of the simulated driver, and how an exported function begins and ends; current.h has what needs a
 * context. */
#ifndef TUI_PROBE_SIMGPU_DRIVER_H
#define TUI_PROBE_SIMGPU_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"
#include "handles.h"
#include "heap.h"
#include "machine.h"

/* An exported function. */
#define API __attribute__((visibility("default"))) CUresult

/* The form of an exported function for a per-thread default stream. Everything runs in order here: it is the same. */
#define SAME_AS(alias_name, name) \
    extern __typeof__(name) alias_name __attribute__((alias(#name), visibility("default")))
#define PER_THREAD_STREAM(name) SAME_AS(name##_ptsz, name)
#define PER_THREAD_DEFAULT(name) SAME_AS(name##_ptds, name)

enum { LIMIT_COUNT = 10 };

struct context {
    CUcontext handle;
    uint64_t id;
    unsigned flags;
    unsigned api_version;
    CUresult fault; /* after a kernel failed, what every call returns */
    size_t limits[LIMIT_COUNT];
};

struct driver {
    bool initialized;
    atomic_bool forked; /* this process is a fork of the one that called cuInit */
    unsigned sm_count;
    const struct generation *generation;
    int memory_file;
    uint8_t *memory; /* device memory, then pinned host memory: one mapping, shared with the server */
    uint64_t memory_bytes; /* of each of the two */
    struct heap device_heap;
    struct heap host_heap;
    atomic_uint_fast64_t clock_cycles; /* simulated time */
};

extern struct driver driver;

void driver_lock(void);
void driver_unlock(void);

/* Locks the driver. Fails, without the lock, before cuInit and in a forked child. */
CUresult enter_driver(void);

/* True if the device has the memory that the driver itself takes for a context, a module, a stream, an event or an
 * executable while it makes one. */
bool driver_has_room(void);

/* Unlocks the driver and returns `result`. */
CUresult leave(CUresult result);

#endif
