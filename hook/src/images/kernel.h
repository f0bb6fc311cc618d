/* Loads of images, their kernels, and the probed functions of these. A handle of the program leads to an instance: a
 * kernel of one load. Instances of equal content are one kernel, which has the prepared image, the schedule and the
 * row. */
#ifndef TUI_PROBE_KERNEL_H
#define TUI_PROBE_KERNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backoff.h"
#include "cuda_abi.h"
#include "digest.h"
#include "image.h"
#include "reasons.h"
#include "sampling.h"

/* One load of an image, as a module or as a library. */
struct code {
    struct code *newer, *older; /* of those that are loaded */
    struct image *image; /* NULL after unloading, or if the image was never seen */
    uint64_t serial;     /* loads of the process before this one */
    uint64_t options;    /* a hash of the options of the load that change its kernels */
    bool is_library;
    CUcontext context; /* that it was loaded in; NULL for a library */
    /* Guarded by the registry's lock. */
    bool is_leaving;   /* the driver is unloading it: its handles may be dead */
    bool is_forgotten; /* no handle leads to it */
    union {
        void *handle;
        CUmodule module;
        CUlibrary library;
    };
    struct instance *instances;
};

enum { INSTANCE_RECENT_GROUPS = 4 };

/* A kernel of one load. The variants are loaded for it, since variables belong to a load. */
struct instance {
    _Atomic(struct kernel *) kernel; /* NULL before its first launch */
    /* The groups of its last launches, by a hash of the shape. In a program that does much besides, each step from
     * instance to kernel, to its table of groups and to the group costs a launch 0.1 us: the caches do not have it. */
    _Atomic(struct shape_group *) recent_groups[INSTANCE_RECENT_GROUPS];
    struct instance *next; /* of the same code */
    struct code *code;
    char *name;
    CUkernel library_kernel; /* its handle as a library kernel, if it has one */
    struct legacy_launch *legacy_launch; /* what was set for a launch in steps; NULL: nothing */
    _Atomic(struct variant *) variants[]; /* for each probe of the run, in their order, and the fused one */
};

/* Instances are the same kernel if they have the same name and these. */
struct identity {
    struct digest image;
    uint64_t options;    /* of the load */
    unsigned capability; /* of the device, for which kernels are prepared */
};

struct parameter {
    size_t offset, size;
};

enum map_level { MAP_THREAD = 0, MAP_WARP = 1 };

/* The layout of its records on the device; see layout.h. */
enum map_layout { MAP_PLAIN, MAP_MARKED, MAP_ROWS, MAP_QUEUE, MAP_COUNTS, MAP_SITES, MAP_FOLDED, MAP_RESIDENT };

enum { EVEN_RECORD_BYTES = 16 }; /* of maps whose lanes 0 and 1 may save for their warp */

struct map {
    enum map_level level;
    enum map_layout layout;
    uint32_t record; /* bytes */
    uint32_t cap;    /* records per slot; 0 if each launch has its own */
    bool even;       /* of MAP_ROWS: lanes 0 and 1 may have saved for their warp */
    uint32_t sites, copies; /* of MAP_SITES: records of the whole launch, and how often each is on the device */
    uint32_t max; /* of MAP_SITES: where in a record the largest value of all copies counts, not the sum; else record */
    struct reduction *reduction; /* what is saved of its records; NULL: all of them. See reduce.h */
};

/* A launch in which no site has this part of the whole is the last of its shape with the probe. The first field counts
 * of each site, and that of a map that is reduced to one record. */
struct least_share {
    size_t sites, whole; /* maps */
    unsigned percent; /* 0: the measured waits end no turns */
};

/* The form of a probe in a kernel: its PTX was assembled anew, or code was grafted into the machine code. */
enum way { WAY_PTX, WAY_GRAFT };

/* A place in a file of machine code that gets the address of a variable of the original's module. */
struct patch {
    enum patch_kind { PATCH_ABS64, PATCH_ABS32_LO, PATCH_ABS32_HI } kind;
    uint64_t offset, addend; /* bytes of the file; of the address, modulo 2^64 */
    char *variable;
};

/* A variable in constant memory, which the probed module has a copy of. */
struct constant {
    char *variable;
    size_t size;
};

/* The probed function of a kernel in one context. */
struct variant {
    struct variant *next;
    bool sampled; /* the sampled form of a probe that has both */
    _Atomic(CUcontext) context; /* NULL while that may be about to go, and once it is gone */
    CUcontext left; /* which one may be about to go */
    CUdevice device;
    CUmodule module;
    CUfunction function;
    uint32_t most_threads; /* of a block, where the probe's registers leave fewer than the original has; else 0 */
    CUdeviceptr *globals; /* addresses in the original's module */
    size_t *global_sizes;
    struct constant_copy {
        CUdeviceptr from, to;
    } *constants; /* of the constants of its probe */
    _Atomic(struct residency *) residency; /* how many blocks are on the device at the same time; see residency.h */
    atomic_uint changes; /* that the program has made to the function's limits and preferences */
    struct pool *pool;
    const struct reason *reason; /* why it cannot be launched there; NULL if it can */
};

enum { KERNEL_TURNS = 16 };

/* The same kernel with the same probe, made to measure only some blocks: for launches whose records would take too
 * much. It is asked for when the first such launch comes. */
struct sampled_form {
    char *load_path;
    _Atomic(const struct reason *) reason; /* why there is none */
    atomic_bool ready; /* one of the above is set, and constant */
    atomic_bool awaited; /* a hook thread prepares it */
    bool in_preparation; /* by some thread; under the lock of kernel_folder.h */
};

/* A kernel under one probe: set while that is prepared, constant once it is KERNEL_PROBED. */
struct kernel_probe {
    struct kernel *kernel;
    const char *name; /* of the probe, where the run has several */
    bool is_part; /* of the kernel's fused probe */
    struct sampling sampling; /* which blocks are to measure */
    size_t n_maps;
    struct map *maps;
    struct least_share least;
    bool sampled; /* only the blocks of the sample measure; the hook passes the sample */
    bool independent; /* no block can wait for another one, as the engine says */
    bool reads_allocations; /* the hook passes the table of allocations */
    bool detail; /* all records are saved of maps that could be reduced */
    bool dynamic; /* some map has no cap of its own */
    bool resident; /* its maps are in the table that the watchdog reads; see resident.h */
    _Atomic(struct capacities *) capacities; /* those of the next launch */
    size_t n_globals;
    char **globals;
    enum way way;
    size_t n_patches, n_constants;
    struct patch *patches;
    struct constant *constants;
    const struct reason *no_replay; /* why it must not be run twice, from the engine */
    const struct reason *note; /* what a user should know of it, from the engine; NULL: nothing */
    char *load_path;
    struct sampled_form sampled_form;
    _Atomic(const struct reason *) reason; /* why no launch has this probe; NULL if launches may */
    atomic_uint served[KERNEL_TURNS]; /* which launch had it last, by the kernel's turns; 0: none. See rotation.h */
};

/* The choice of timed launches of a group. */
struct timed {
    struct timed_kind {
        atomic_uint_fast64_t launches;
        atomic_uint_fast64_t counted; /* those that times stand for */
        atomic_uint_fast64_t typical; /* ns of late, smoothed; 0: none known */
        struct backoff backoff;
    } of[2]; /* originals, probed */
    atomic_bool after_probed; /* a probed launch was the last one: the next original shows what the probe costs */
    atomic_bool overlapped; /* by programmatic dependent launches: never timed again */
};

enum kernel_status { KERNEL_NEW, KERNEL_PROBED, KERNEL_PASSED };

enum { KERNEL_NO_INDEX = UINT32_MAX };

struct kernel {
    struct kernel *of_bucket; /* the next with the same hash; see kernels.c */
    struct kernel *older; /* of the process */
    struct identity identity;
    char *name;
    uint32_t index; /* in order of first launch; KERNEL_NO_INDEX before */
    _Atomic(enum kernel_status) status;
    _Atomic(const struct reason *) reason; /* why it is run unprobed */
    atomic_bool awaited; /* it is new, and a hook thread prepares it */
    atomic_bool late_awaited; /* it has some of its probes, and a hook thread prepares the others */
    struct late_answers *late; /* the engine's about those others; see prepare.c. Under the lock of kernel_folder.h */
    bool in_preparation; /* by some thread; under the lock of kernel_folder.h */
    atomic_uint_fast64_t launches; /* counted if some are to be selected */
    atomic_uint_fast64_t held_bytes, held_files; /* of the trace's budgets */
    atomic_uint_fast64_t unlisted; /* launches for which event.log had no room */
    _Atomic(const struct reason *) unprepared; /* why it has not been prepared so far */
    _Atomic(struct group_table *) groups; /* of its launches; see schedule.h */

    /* Set while it is prepared, constant once it is KERNEL_PROBED; of a probe once that has no reason. */
    bool parameters_known;
    size_t n_parameters, parameter_bytes;
    struct parameter *parameters;

    unsigned block_threads; /* of the launch that it was prepared for */
    char *folder; /* in the trace; NULL: none was made */
    atomic_uint turns[KERNEL_TURNS]; /* launches that had a turn, by a hash of their shape */
    size_t n_probes; /* one for each probe of the run, in their order; constant */
    struct kernel_probe *fused; /* behind them: all counting probes of the run together; NULL: there are not several */
    struct kernel_probe probes[];
};

/* The name of the fused probe, and of the folder of its files; no probe of a run with one has it. */
#define FUSED_NAME "fused"

/* The probe that a launch with PROBE has: the fused one for its parts, unless a kernel cannot have that. */
static inline struct kernel_probe *kernel_probe_launched(struct kernel_probe *probe)
{
    struct kernel_probe *fused = probe->is_part ? probe->kernel->fused : NULL;
    return fused && !atomic_load_explicit(&fused->reason, memory_order_acquire) ? fused : probe;
}

/* True if launches with PROBE leave records: not all of its maps are for the watchdog only. */
static inline bool kernel_probe_leaves_records(const struct kernel_probe *probe)
{
    bool any = !probe->resident;
    for (size_t i = 0; i < probe->n_maps && !any; i++)
        any = probe->maps[i].layout != MAP_RESIDENT;
    return any;
}

/* The next probe of those that leave records in a launch with PROBE, which are itself, or the parts of a fused one. The
 * first for LAST NULL; NULL behind the last. */
static inline struct kernel_probe *kernel_probe_next(struct kernel_probe *probe, struct kernel_probe *last)
{
    struct kernel *kernel = probe->kernel;
    if (probe != kernel->fused)
        return last ? NULL : probe;
    struct kernel_probe *next = last ? last + 1 : kernel->probes;
    while (next < probe && !next->is_part)
        next++;
    return next < probe ? next : NULL;
}

#endif
