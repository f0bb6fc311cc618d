#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "allocation_table.h"
#include "layout.h"
#include "probed_launch.h"
#include "reasons.h"
#include "resident.h"

/* Room of the thread for its next launch. NULL where it has none yet, or a launch is under way. */
static _Thread_local struct arguments *spare __attribute__((tls_model("initial-exec")));
static pthread_key_t key; /* frees it with the thread */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_group(void)
{
    if (pthread_key_create(&key, free) != 0)
        key = (pthread_key_t)-1; /* the room of a thread that ends is lost */
}

struct arguments *arguments_take(void)
{
    struct arguments *taken = spare;
    spare = NULL;
    return taken ? taken : malloc(sizeof *taken);
}

/* A launch in a handler may have had room of its own meanwhile. */
void arguments_give(struct arguments *arguments)
{
    if (spare || !arguments) {
        free(arguments);
        return;
    }
    spare = arguments;
    pthread_once(&once, make_group);
    if (pthread_getspecific(key) != arguments)
        pthread_setspecific(key, arguments);
}

/* A parameter of which the program's buffer has only the beginning; the rest is zero. NULL: there is no
 * room. NCCL passes as much of a large structure as its kernels will read. */
static void *completed(struct arguments *arguments, const struct parameter *parameter, const char *begun, size_t given)
{
    if (parameter->size > sizeof arguments->completed)
        return NULL;
    memcpy(arguments->completed, begun, given);
    memset(arguments->completed + given, 0, parameter->size - given);
    return arguments->completed;
}

/* One buffer of values is turned into a pointer to each, which needs their offsets. */
static const struct reason *from_buffer(struct arguments *arguments, const struct launch *launch,
                                        const struct kernel *kernel)
{
    char *buffer = NULL;
    const size_t *size = NULL;
    if (!kernel->parameters_known)
        return reason(PARAMETERS_UNPLACED);
    for (void **extra = launch->extra; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = extra[1];
        else
            return reason(PARAMETERS_OF_UNKNOWN_KIND);
    }
    for (size_t i = 0; i < kernel->n_parameters; i++) {
        const struct parameter *parameter = &kernel->parameters[i];
        if (!buffer || !size || parameter->offset >= *size)
            return reason(PARAMETERS_CUT_OFF);
        const size_t given = *size - parameter->offset; /* less than all in the last one only */
        arguments->pointers[i] = buffer + parameter->offset;
        if (given < parameter->size)
            arguments->pointers[i] = completed(arguments, parameter, buffer + parameter->offset, given);
        if (!arguments->pointers[i])
            return reason(PARAMETERS_CUT_OFF);
    }
    return NULL;
}

const struct reason *arguments_originals(struct arguments *arguments, const struct launch *launch,
                                         const struct kernel *kernel)
{
    if (kernel->n_parameters == 0)
        return NULL;
    if (launch->parameters && launch->extra)
        return reason(PARAMETERS_TWICE);
    if (launch->parameters) {
        memcpy(arguments->pointers, launch->parameters, kernel->n_parameters * sizeof(void *));
        return NULL;
    }
    return launch->extra ? from_buffer(arguments, launch, kernel) : reason(PARAMETERS_MISSING);
}

/* Writes the choice of blocks that measure. Returns how many values that takes. */
static size_t sampling(const struct launch *launch, const struct kernel_probe *probe, uint64_t *values)
{
    struct extent extent;
    if (!layout_extent(&extent, probe, launch->capacities, launch->grid, launch->block) || !extent.is_sample)
        return 0;
    sampling_parameters(&extent.sampled, values);
    return SAMPLING_PARAMETERS;
}

/* The value in the low bits of the address of a marked map of warps: the warps of a block of a flat launch, else 0. */
static CUdeviceptr flat_warps(const struct map *map, const struct launch *launch)
{
    const uint32_t *grid = launch->grid, *block = launch->block;
    const bool flat = grid[1] * grid[2] == 1 && block[1] * block[2] == 1;
    return flat && map->layout == MAP_MARKED && map->level == MAP_WARP ? (block[0] + WARP_THREADS - 1) / WARP_THREADS
                                                                       : 0;
}

const struct reason *arguments_fill(struct arguments *arguments, const struct launch *launch,
                                    const struct kernel_probe *probe, const struct variant *variant, CUdeviceptr memory)
{
    const struct kernel *kernel = probe->kernel;
    size_t n = kernel->n_parameters, added = 0;
    CUdeviceptr table = 0, allocations = 0;
    const struct reason *reason = arguments_originals(arguments, launch, kernel);
    if (!reason && probe->resident)
        reason = resident_table(variant->pool, probe, &table);
    if (!reason && probe->reads_allocations)
        reason = allocation_table(variant, probe->n_globals, &allocations);
    if (reason)
        return reason;
    for (size_t i = 0; i < probe->n_maps; i++) {
        size_t size = 0;
        if (probe->maps[i].layout == MAP_COUNTS)
            continue;
        if (probe->maps[i].layout == MAP_RESIDENT) {
            arguments->addresses[added++] = table;
            table += resident_record_size(&probe->maps[i]);
            continue;
        }
        arguments->addresses[added++] = memory | flat_warps(&probe->maps[i], launch);
        layout_device_map(probe, i, launch->capacities, launch->grid, launch->block, &size);
        memory += size;
    }
    for (size_t i = 0; i < probe->n_maps; i++)
        if (!probe->maps[i].cap)
            arguments->addresses[added++] = launch->capacities->of[i];
    if (probe->resident)
        arguments->addresses[added++] = launch->number;
    if (probe->reads_allocations)
        arguments->addresses[added++] = allocations;
    added += sampling(launch, probe, arguments->addresses + added);
    for (size_t i = 0; i < probe->n_globals; i++)
        arguments->addresses[added++] = variant->globals[i];
    for (size_t i = 0; i < added; i++)
        arguments->pointers[n + i] = &arguments->addresses[i];
    return NULL;
}
