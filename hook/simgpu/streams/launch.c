/* Launches run: the kernel runs in the server, and the call returns when it has ended. A kernel that fails breaks its
 * context, and later calls tell, as with the real driver; a kernel that the simulated GPU cannot execute fails its
 * launch and nothing else. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "current.h"
#include "fault_words.h"
#include "findings.h"
#include "journal.h"
#include "launch.h"
#include "module.h"
#include "report.h"
#include "server.h"
#include "work_kinds.h"

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
    journal_put(request, (const struct block *[]){driver.device_heap.first, driver.host_heap.first}, 2);
}

/* True if a result that the server sent is a failure of the kernel itself. The real driver would not know of it when
 * the launch returns. */
static bool is_fault(CUresult result)
{
    return result >= CUDA_ERROR_ILLEGAL_ADDRESS && result <= CUDA_ERROR_LAUNCH_FAILED;
}

/* Output of kernels goes where the program's own output goes, in order with that. */
static void print(const uint8_t *text, size_t bytes)
{
    if (!text || !bytes)
        return;
    fwrite(text, 1, bytes, stdout);
    fflush(stdout);
}

/* The last fields of a reply: output, findings of checks. A server that is gone has sent none. */
static void read_rest(struct reader *body)
{
    size_t bytes = 0;
    const uint8_t *text = body->next ? reader_bytes(body, &bytes) : NULL;
    print(text, bytes);
    if (text)
        findings_keep(body);
}

static void read_execution(struct reader *body)
{
    driver.clock_cycles += reader_u64(body);
    (void)reader_u64(body); /* instructions */
    read_rest(body);
}

static CUresult execute(const struct message *request, CUcontext handle, const char *name)
{
    struct reply reply;
    CUresult result = server_call(REQUEST_LAUNCH, request, &reply);
    if (result)
        read_rest(&reply.body);
    else
        read_execution(&reply.body);
    bool is_told = reply.error != NULL;
    if (is_told)
        report("kernel %s: %s", name, reply.error);
    if (is_told && is_fault(result))
        fault_words_keep(name, reply.error, result == CUDA_ERROR_LAUNCH_TIMEOUT);
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
static CUresult launch_run(const struct kernel_call *call)
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

static CUresult run_call(const struct work *work)
{
    return launch_run(&work->of.kernel);
}

static bool own_parameters(struct work *work)
{
    struct kernel_call *call = &work->of.kernel;
    uint8_t *packed = malloc(call->packed_bytes + 1);
    if (packed)
        memcpy(packed, call->packed, call->packed_bytes);
    call->packed = packed;
    return packed != NULL;
}

static void free_parameters(struct work *work)
{
    free(work->of.kernel.packed);
}

const struct work_kind kernel_work = {.type = NODE_KERNEL,
                                      .run = run_call,
                                      .own = own_parameters,
                                      .release = free_parameters};

CUkernelNode kernel_node_upgraded(const CUkernelNode *older)
{
    CUkernelNode node = {0};
    memcpy(&node, older, offsetof(CUkernelNode, kernel));
    return node;
}

CUresult work_of_kernel(struct work *work, const CUkernelNode *node, bool cooperative)
{
    struct launch launch = {.function = node->function ? node->function : node->kernel,
                            .dynamic_shared_bytes = node->shared_bytes,
                            .cooperative = cooperative,
                            .parameters = node->parameters,
                            .extra = node->extra};
    memcpy(launch.grid, node->grid, sizeof launch.grid);
    memcpy(launch.block, node->block, sizeof launch.block);
    work->kind = &kernel_work;
    return launch_pack(&launch, &work->of.kernel);
}
