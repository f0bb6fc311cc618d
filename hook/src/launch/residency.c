#include "residency.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "real.h"
#include "reasons.h"
#include "registry.h"

/* The driver's answer takes microseconds, more than a whole unprobed launch. Answers are never freed, since a launch may
 * be reading one, so the number of those of a kernel is limited. */
enum { SLOTS = 16, MOST_KEPT = 256 };

/* Blocks of one shape, with the clusters that the launch asks for, and how often the function had been changed. */
struct block_shape {
    uint32_t block[3], shared, cluster[3], changes;
};

/* The driver's answer for a shape; constant. */
struct resident {
    struct resident *older; /* of the same residency */
    struct block_shape shape;
    int64_t original, probed; /* blocks on the device at the same time; -1: the driver does not say */
    const struct reason *reason; /* for launches between the two; made once, since launches are many */
};

/* Answers by a hash of their shapes. One that gives way to another stays in memory, since a launch may be
 * reading it. */
struct residency {
    _Atomic(const struct resident *) of[SLOTS];
    /* Guarded by the mutex. */
    struct resident *newest;
    unsigned kept;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static struct block_shape shape_of(const struct launch *launch, struct variant *variant)
{
    struct block_shape shape = {.block = {launch->block[0], launch->block[1], launch->block[2]},
                                .shared = launch->shared,
                                .changes = atomic_load_explicit(&variant->changes, memory_order_relaxed)};
    for (unsigned i = 0; launch->form == LAUNCH_EX && i < launch->config->numAttrs; i++)
        if (launch->config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            memcpy(shape.cluster, launch->config->attrs[i].value.bytes, sizeof shape.cluster);
    return shape;
}

static bool same(const struct block_shape *a, const struct block_shape *b)
{
    return a->block[0] == b->block[0] && a->block[1] == b->block[1] && a->block[2] == b->block[2] &&
           a->shared == b->shared && a->cluster[0] == b->cluster[0] && a->cluster[1] == b->cluster[1] &&
           a->cluster[2] == b->cluster[2] && a->changes == b->changes;
}

static unsigned slot_of(const struct block_shape *shape)
{
    uint32_t hash = shape->shared;
    for (int i = 0; i < 3; i++)
        hash = (hash * 16777619u ^ shape->block[i]) * 16777619u ^ shape->cluster[i];
    return (hash ^ hash >> 16) % SLOTS;
}

/* Clusters that were chosen when the kernel was compiled. */
static void read_compiled_cluster(CUfunction function, uint32_t cluster[3])
{
    for (int i = 0; i < 3; i++) {
        int blocks = 0;
        if (REAL_OR_NOT_FOUND(cuFuncGetAttribute, &blocks, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH + i, function) ==
            CUDA_SUCCESS)
            cluster[i] = (uint32_t)blocks;
    }
}

static uint64_t threads_of(const struct launch *launch)
{
    return (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
}

static int64_t clusters_at_once(CUfunction function, const struct launch *launch, const uint32_t cluster[3])
{
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    CUlaunchConfig config = {launch->grid[0],  launch->grid[1], launch->grid[2], launch->block[0], launch->block[1],
                             launch->block[2], launch->shared,  launch->stream,  &attribute,       1};
    int clusters = 0;
    memcpy(attribute.value.bytes, cluster, 3 * sizeof *cluster);
    if (REAL_OR_NOT_FOUND(cuOccupancyMaxActiveClusters, &clusters, function, &config) != CUDA_SUCCESS || clusters < 0)
        return -1;
    return (int64_t)clusters * cluster[0] * cluster[1] * cluster[2];
}

/* Those of the context: green contexts have a part of the device. 0: the driver does not say. */
static uint64_t multiprocessors_of(const struct variant *variant)
{
    CUdevResource resource = {0};
    int all = 0;
    if (REAL_OR_NOT_FOUND(cuDeviceGetAttribute, &all, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, variant->device) !=
            CUDA_SUCCESS ||
        all <= 0)
        return 0;
    if (REAL_OR_NOT_FOUND(cuCtxGetDevResource, atomic_load(&variant->context), &resource, CU_DEV_RESOURCE_TYPE_SM) ==
            CUDA_SUCCESS &&
        resource.multiprocessors && resource.multiprocessors < (unsigned)all)
        return resource.multiprocessors;
    return (uint64_t)all;
}

static int64_t blocks_at_once(CUfunction function, const struct launch *launch, uint64_t multiprocessors)
{
    const uint64_t threads = threads_of(launch);
    int blocks = 0;
    if (threads > INT_MAX ||
        REAL_OR_NOT_FOUND(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function, (int)threads,
                          launch->shared) != CUDA_SUCCESS ||
        !multiprocessors)
        return -1;
    return blocks * (int64_t)multiprocessors;
}

static const struct reason *make_reason(const struct resident *resident, const struct launch *launch)
{
    char fit[REASON_NUMBER_SIZE], with_probe[REASON_NUMBER_SIZE];
    if (!resident->probed)
        return reason_with(NO_BLOCK_FITS, reason_number(fit, threads_of(launch)),
                           reason_number(with_probe, launch->shared));
    return reason_with(RESIDENCY, reason_number(fit, (uint64_t)resident->original),
                       reason_number(with_probe, (uint64_t)resident->probed));
}

/* The driver would refuse a block of that many threads: their registers exceed those of an SM. */
static const struct reason *too_many_threads(const struct variant *variant, const struct launch *launch)
{
    int registers = 0;
    char number[3][REASON_NUMBER_SIZE];
    if (REAL_OR_NOT_FOUND(cuFuncGetAttribute, &registers, CU_FUNC_ATTRIBUTE_NUM_REGS, variant->function) !=
        CUDA_SUCCESS)
        registers = 0;
    return reason_with(TOO_MANY_THREADS, reason_number(number[0], (uint64_t)registers),
                       reason_number(number[1], variant->most_threads), reason_number(number[2], threads_of(launch)));
}

static struct resident ask(const struct variant *variant, const struct launch *launch, const struct block_shape *shape)
{
    struct resident resident = {.shape = *shape, .original = -1, .probed = -1};
    uint32_t cluster[3] = {shape->cluster[0], shape->cluster[1], shape->cluster[2]};
    CUfunction original = registry_function(launch->instance, launch->function);
    if (!original)
        return resident;
    if (!cluster[0])
        read_compiled_cluster(original, cluster);
    if (cluster[0] && cluster[1] && cluster[2]) {
        resident.original = clusters_at_once(original, launch, cluster);
        resident.probed = clusters_at_once(variant->function, launch, cluster);
    } else {
        const uint64_t multiprocessors = multiprocessors_of(variant);
        resident.original = blocks_at_once(original, launch, multiprocessors);
        resident.probed = blocks_at_once(variant->function, launch, multiprocessors);
    }
    if (0 <= resident.probed && resident.probed < resident.original)
        resident.reason = make_reason(&resident, launch);
    return resident;
}

static struct residency *residency_of(struct variant *variant)
{
    struct residency *residency = atomic_load_explicit(&variant->residency, memory_order_acquire);
    if (residency)
        return residency;
    pthread_mutex_lock(&mutex);
    residency = atomic_load(&variant->residency);
    if (!residency && (residency = calloc(1, sizeof *residency)))
        atomic_store_explicit(&variant->residency, residency, memory_order_release);
    pthread_mutex_unlock(&mutex);
    return residency;
}

/* Keeps an answer for later launches, up to a number. */
static void keep(struct residency *residency, const struct resident *answer)
{
    struct resident *copy = NULL;
    pthread_mutex_lock(&mutex);
    if (residency->kept < MOST_KEPT && (copy = malloc(sizeof *copy))) {
        *copy = *answer;
        copy->older = residency->newest;
        residency->newest = copy;
        residency->kept++;
        atomic_store_explicit(&residency->of[slot_of(&copy->shape)], copy, memory_order_release);
    }
    pthread_mutex_unlock(&mutex);
}

static struct resident find(struct variant *variant, const struct launch *launch)
{
    const struct block_shape shape = shape_of(launch, variant);
    struct residency *residency = residency_of(variant);
    const struct resident *known =
        residency ? atomic_load_explicit(&residency->of[slot_of(&shape)], memory_order_acquire) : NULL;
    if (known && same(&known->shape, &shape))
        return *known;
    const struct resident answer = ask(variant, launch, &shape);
    if (residency)
        keep(residency, &answer);
    return answer;
}

const struct reason *residency_refuses(struct variant *variant, const struct kernel_probe *probe,
                                       const struct launch *launch)
{
    if (variant->most_threads && threads_of(launch) > variant->most_threads)
        return too_many_threads(variant, launch);
    if (probe->independent && !launch_is_cooperative(launch))
        return NULL;
    const uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    const struct resident resident = find(variant, launch);
    if (!resident.reason || !resident.probed)
        return resident.reason;
    return (uint64_t)resident.probed < blocks && blocks <= (uint64_t)resident.original ? resident.reason : NULL;
}

void residency_free(struct residency *residency)
{
    while (residency && residency->newest) {
        struct resident *resident = residency->newest;
        residency->newest = resident->older;
        free(resident);
    }
    free(residency);
}
