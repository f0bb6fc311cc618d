/* A kernel's properties: asked of the server once, when first needed. */

#include <stdlib.h>

#include "module.h"
#include "report.h"
#include "server.h"

struct kernel *kernel_of(const void *handle)
{
    struct kernel *kernel = handle_object(HANDLE_FUNCTION, handle);
    return kernel ? kernel : handle_object(HANDLE_KERNEL, handle);
}

CUresult enter_kernel(const void *handle, struct kernel **kernel)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    *kernel = kernel_of(handle);
    return *kernel ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_HANDLE);
}

static CUresult read_description(struct kernel *kernel, struct reader *reader)
{
    kernel->static_shared_bytes = reader_u32(reader);
    kernel->local_bytes = reader_u32(reader);
    kernel->max_threads = reader_u32(reader);
    kernel->registers = (int32_t)reader_u32(reader);
    kernel->estimated_registers = (int)reader_u32(reader);
    for (int i = 0; i < 3; i++)
        kernel->cluster[i] = reader_u32(reader);
    uint32_t count = reader_u32(reader);
    if (reader->failed || count > (size_t)(reader->end - reader->next))
        return CUDA_ERROR_LAUNCH_FAILED;
    kernel->parameters = calloc(count + 1, sizeof *kernel->parameters);
    if (!kernel->parameters)
        return CUDA_ERROR_OUT_OF_MEMORY;
    kernel->parameter_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct parameter parameter = {.offset = reader_u32(reader), .size = reader_u32(reader)};
        kernel->parameters[i] = parameter;
        uint32_t end = parameter.offset + parameter.size;
        if (end > kernel->parameter_bytes)
            kernel->parameter_bytes = end;
    }
    kernel->described = !reader->failed;
    return reader->failed ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}

CUresult kernel_describe(struct kernel *kernel)
{
    if (kernel->described)
        return CUDA_SUCCESS;
    struct message request = {0};
    struct reply reply;
    message_put_u64(&request, kernel->module->server_id);
    message_put_u32(&request, kernel->index);
    CUresult result = server_call(REQUEST_DESCRIBE, &request, &reply);
    if (reply.error)
        report("kernel %s: %s", kernel->name, reply.error);
    if (!result)
        result = read_description(kernel, &reply.body);
    reply_free(&reply);
    message_free(&request);
    return result;
}
