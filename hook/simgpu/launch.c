/* Launches: the arguments are checked and packed here, the kernel runs in the server, and the call returns when it has
 * ended. A kernel that fails breaks its context, and later calls tell, as with the real driver; a kernel that the
 * simulated GPU cannot execute fails its launch and nothing else. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "cluster.h"
#include "fault_words.h"
#include "launch.h"
#include "machine.h"
#include "module.h"
#include "report.h"
#include "server.h"
#include "stream.h"

static bool shape_is_valid(const struct launch *launch)
{
    const unsigned *grid = launch->grid, *block = launch->block;
    for (int i = 0; i < 3; i++) {
        if (!grid[i] || !block[i])
            return false;
    }
    return grid[0] <= GRID_MAX_X && grid[1] <= GRID_MAX_YZ && grid[2] <= GRID_MAX_YZ && block[0] <= BLOCK_MAX_X &&
           block[1] <= BLOCK_MAX_Y && block[2] <= BLOCK_MAX_Z;
}

static CUresult check(const struct launch *launch, const struct kernel *kernel)
{
    if (!stream_exists(launch->stream))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!shape_is_valid(launch) || (launch->parameters && launch->extra))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    if (threads > BLOCK_MAX_THREADS || threads > kernel->max_threads)
        return CUDA_ERROR_INVALID_VALUE;
    if (launch->dynamic_shared_bytes > (unsigned)kernel_dynamic_shared_limit(kernel))
        return CUDA_ERROR_INVALID_VALUE;
    if (!cluster_is_valid(kernel, launch->cluster, launch->grid) ||
        !cluster_is_valid(kernel, kernel->cluster, launch->grid))
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    uint64_t resident = kernel_blocks_per_sm(kernel, (unsigned)threads, launch->dynamic_shared_bytes);
    if (!resident)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    bool too_large = launch->cooperative && blocks > resident * driver.sm_count;
    return too_large ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

/* The parameters as one buffer that the program made: `extra`. It may end within the last one, the rest of which is zero
 * then, as it is in PACKED. */
static CUresult copy_buffer(void **extra, const struct kernel *kernel, uint8_t *packed)
{
    const size_t packed_bytes = kernel->parameter_bytes;
    const size_t last = kernel->parameter_count ? kernel->parameters[kernel->parameter_count - 1].offset : 0;
    const void *buffer = NULL;
    size_t bytes = 0;
    for (; *extra != LAUNCH_PARAM_END; extra += 2) {
        if (*extra == LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == LAUNCH_PARAM_BUFFER_SIZE)
            bytes = *(const size_t *)extra[1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (packed_bytes && (bytes <= last || !buffer))
        return CUDA_ERROR_INVALID_VALUE;
    if (packed_bytes)
        memcpy(packed, buffer, bytes < packed_bytes ? bytes : packed_bytes);
    return CUDA_SUCCESS;
}

static CUresult pack(const struct launch *launch, const struct kernel *kernel, uint8_t *packed)
{
    if (launch->extra)
        return copy_buffer(launch->extra, kernel, packed);
    if (kernel->parameter_count && !launch->parameters)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        memcpy(packed + kernel->parameters[i].offset, launch->parameters[i], kernel->parameters[i].size);
    }
    return CUDA_SUCCESS;
}

CUresult launch_pack(const struct launch *launch, struct kernel_call *call)
{
    struct kernel *kernel = kernel_of(launch->function);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = kernel_describe(kernel);
    if (!result)
        result = check(launch, kernel);
    if (result)
        return result;
    *call = (struct kernel_call){.function = launch->function,
                                 .shared_bytes = launch->dynamic_shared_bytes,
                                 .cooperative = launch->cooperative,
                                 .packed = calloc(1, kernel->parameter_bytes + 1),
                                 .packed_bytes = kernel->parameter_bytes};
    memcpy(call->grid, launch->grid, sizeof call->grid);
    memcpy(call->block, launch->block, sizeof call->block);
    memcpy(call->cluster, launch->cluster, sizeof call->cluster);
    if (!call->packed)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = pack(launch, kernel, call->packed);
    if (result)
        free(call->packed);
    return result;
}

static void build(const struct kernel_call *call, const struct kernel *kernel, uint64_t workspace,
                  struct message *request)
{
    message_put_u64(request, kernel->module->server_id);
    message_put_u32(request, kernel->index);
    for (int i = 0; i < 3; i++)
        message_put_u32(request, call->grid[i]);
    for (int i = 0; i < 3; i++)
        message_put_u32(request, call->block[i]);
    message_put_u32(request, call->shared_bytes);
    message_put_u64(request, driver.clock_cycles);
    for (int i = 0; i < 3; i++)
        message_put_u32(request, call->cluster[i]);
    message_put_u64(request, workspace);
    message_put_bytes(request, call->packed, call->packed_bytes);
}

/* Whether a result that the server told is a failure of the kernel itself. The real driver would not know of it when
 * the launch returns. */
static bool is_fault(CUresult result)
{
    return result >= CUDA_ERROR_ILLEGAL_ADDRESS && result <= CUDA_ERROR_LAUNCH_FAILED;
}

/* What kernels print goes where the program's own output goes, in order with that. */
static void print(const uint8_t *text, size_t bytes)
{
    if (!text || !bytes)
        return;
    fwrite(text, 1, bytes, stdout);
    fflush(stdout);
}

/* The last field of a reply. A server that is gone has sent none. */
static void print_rest(struct reader *body)
{
    size_t bytes = 0;
    const uint8_t *text = body->next ? reader_bytes(body, &bytes) : NULL;
    print(text, bytes);
}

static void read_execution(struct reader *body)
{
    driver.clock_cycles += reader_u64(body);
    (void)reader_u64(body); /* instructions */
    print_rest(body);
}

static CUresult execute(const struct message *request, CUcontext handle, const char *name)
{
    struct reply reply;
    CUresult result = server_call(REQUEST_LAUNCH, request, &reply);
    if (result)
        print_rest(&reply.body);
    else
        read_execution(&reply.body);
    bool is_told = reply.error != NULL;
    if (is_told)
        report("kernel %s: %s", name, reply.error);
    if (is_told && is_fault(result))
        fault_words_keep(name, reply.error);
    reply_free(&reply);
    if (!is_told || !is_fault(result))
        return result;
    driver_lock();
    struct context *context = handle_object(HANDLE_CONTEXT, handle);
    if (context)
        context->fault = result;
    return leave(CUDA_SUCCESS);
}

/* Memory for the barrier of a cooperative grid, zero as it begins. */
static struct block *take_workspace(void)
{
    enum { BYTES = 8 };
    struct block *block = heap_allocate(&driver.device_heap, BYTES, BLOCK_VARIABLE, &driver);
    if (block)
        memset((void *)block->address, 0, BYTES);
    return block;
}

static void give_back(struct block *workspace)
{
    if (!workspace)
        return;
    driver_lock();
    heap_release(&driver.device_heap, workspace);
    driver_unlock();
}

/* The driver's lock is not held while the kernel runs: other threads may allocate, copy and query meanwhile. */
CUresult launch_run(const struct kernel_call *call)
{
    struct context *context;
    struct message request = {0};
    CUresult result = enter(&context);
    if (result)
        return result;
    CUcontext handle = context->handle;
    const struct kernel *kernel = kernel_of(call->function);
    if (!kernel)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    struct block *workspace = call->cooperative ? take_workspace() : NULL;
    char *name = strdup(kernel->name);
    build(call, kernel, workspace ? workspace->address : 0, &request);
    leave(CUDA_SUCCESS);
    bool has_memory = name && (workspace || !call->cooperative);
    result = has_memory ? execute(&request, handle, name) : CUDA_ERROR_OUT_OF_MEMORY;
    give_back(workspace);
    free(name);
    message_free(&request);
    return result;
}

static CUresult run(const struct launch *launch)
{
    struct context *context;
    struct work work = {.type = NODE_KERNEL};
    CUresult result = enter(&context);
    if (result)
        return result;
    result = launch_pack(launch, &work.of.kernel);
    if (!result && capture_of(launch->stream))
        return leave(capture_work(launch->stream, &work));
    if (leave(result))
        return result;
    result = launch_run(&work.of.kernel);
    free(work.of.kernel.packed);
    return result;
}

API cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters,
                   void **extra)
{
    return run(&(struct launch){.function = function,
                                .grid = {grid_x, grid_y, grid_z},
                                .block = {block_x, block_y, block_z},
                                .dynamic_shared_bytes = shared_bytes,
                                .stream = stream,
                                .parameters = parameters,
                                .extra = extra});
}
PER_THREAD_STREAM(cuLaunchKernel);

API cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                              unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,
                              void **parameters)
{
    return run(&(struct launch){.function = function,
                                .grid = {grid_x, grid_y, grid_z},
                                .block = {block_x, block_y, block_z},
                                .dynamic_shared_bytes = shared_bytes,
                                .stream = stream,
                                .cooperative = true,
                                .parameters = parameters});
}
PER_THREAD_STREAM(cuLaunchCooperativeKernel);

API cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    if (!config || (config->attribute_count && !config->attributes))
        return CUDA_ERROR_INVALID_VALUE;
    struct launch launch = {.function = function,
                            .grid = {config->grid_x, config->grid_y, config->grid_z},
                            .block = {config->block_x, config->block_y, config->block_z},
                            .dynamic_shared_bytes = config->shared_bytes,
                            .stream = config->stream,
                            .parameters = parameters,
                            .extra = extra};
    for (unsigned i = 0; i < config->attribute_count; i++) {
        const struct CUlaunchAttribute *attribute = &config->attributes[i];
        if (attribute->id == LAUNCH_ATTRIBUTE_COOPERATIVE)
            launch.cooperative = attribute->value.cooperative != 0;
    }
    cluster_of_config(config, launch.cluster);
    return run(&launch);
}
PER_THREAD_STREAM(cuLaunchKernelEx);
