#include "module.h"

#include <stdlib.h>
#include <string.h>

#include "image.h"
#include "report.h"
#include "server.h"

static struct module *modules;

static void free_module(struct module *module)
{
    for (uint32_t i = 0; i < module->kernel_count && module->kernels; i++) {
        handle_destroy(module->kernels[i].function_handle);
        handle_destroy(module->kernels[i].kernel_handle);
        free(module->kernels[i].parameters);
        free(module->kernels[i].legacy_launch.parameters);
        free(module->kernels[i].name);
    }
    for (uint32_t i = 0; i < module->variable_count && module->variables; i++)
        free(module->variables[i].name);
    heap_release_owner(&driver.device_heap, module);
    handle_destroy(module->handle);
    handle_destroy(module->library_handle);
    free(module->kernels);
    free(module->variables);
    free(module);
}

void module_unload(struct module *module)
{
    struct module **link = &modules;
    while (*link != module)
        link = &(*link)->next;
    *link = module->next;
    struct message request = {0};
    struct reply reply;
    message_put_u64(&request, module->server_id);
    (void)server_call(REQUEST_UNLOAD, &request, &reply); /* a server that has died holds no module either */
    reply_free(&reply);
    message_free(&request);
    free_module(module);
}

void modules_unload_owner(const struct context *owner)
{
    for (struct module *module = modules, *next; module; module = next) {
        next = module->next;
        if (module->owner == owner)
            module_unload(module);
    }
}

static CUresult read_kernels(struct module *module, struct reader *reader)
{
    module->kernel_count = reader_u32(reader);
    if (module->kernel_count > (size_t)(reader->end - reader->next))
        return CUDA_ERROR_LAUNCH_FAILED;
    module->kernels = calloc(module->kernel_count + 1, sizeof *module->kernels);
    if (!module->kernels)
        return CUDA_ERROR_OUT_OF_MEMORY;
    bool is_library = module->owner == NULL;
    for (uint32_t i = 0; i < module->kernel_count; i++) {
        struct kernel *kernel = &module->kernels[i];
        *kernel = (struct kernel){.module = module, .index = i, .name = reader_text(reader), .shared_carveout = -1};
        kernel->function_handle = handle_create(HANDLE_FUNCTION, kernel);
        if (is_library)
            kernel->kernel_handle = handle_create(HANDLE_KERNEL, kernel);
        if (!kernel->function_handle || (is_library && !kernel->kernel_handle))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return reader->failed ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}

/* Gives a variable memory with its initial value, and tells its address. */
static CUresult read_variable(struct module *module, struct variable *variable, struct reader *reader,
                              struct message *places)
{
    variable->name = reader_text(reader);
    variable->is_constant = reader_u32(reader) == 1;
    variable->size = reader_u64(reader);
    uint64_t alignment = reader_u64(reader);
    size_t initial_bytes;
    const uint8_t *initial = reader_bytes(reader, &initial_bytes);
    if (reader->failed || initial_bytes > variable->size)
        return CUDA_ERROR_LAUNCH_FAILED;
    if (alignment > HEAP_ALIGNMENT)
        return CUDA_ERROR_NOT_SUPPORTED;
    uint64_t bytes = variable->size ? variable->size : 1;
    const struct block *block = heap_allocate(&driver.device_heap, bytes, BLOCK_VARIABLE, module);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    variable->address = block->address;
    memcpy((void *)block->address, initial, initial_bytes);
    memset((char *)block->address + initial_bytes, 0, variable->size - initial_bytes);
    message_put_u64(places, variable->address);
    return CUDA_SUCCESS;
}

static CUresult place_variables(struct module *module, struct reader *reader)
{
    module->variable_count = reader_u32(reader);
    if (module->variable_count > (size_t)(reader->end - reader->next))
        return CUDA_ERROR_LAUNCH_FAILED;
    module->variables = calloc(module->variable_count + 1, sizeof *module->variables);
    if (!module->variables)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct message places = {0};
    struct reply reply = {0};
    message_put_u64(&places, module->server_id);
    message_put_u32(&places, module->variable_count);
    CUresult result = CUDA_SUCCESS;
    for (uint32_t i = 0; i < module->variable_count && !result; i++) {
        result = read_variable(module, &module->variables[i], reader, &places);
    }
    if (!result)
        result = server_call(REQUEST_PLACE, &places, &reply);
    reply_free(&reply);
    message_free(&places);
    return result;
}

static CUresult read_module(struct module *module, struct reader *reader)
{
    module->server_id = reader_u64(reader);
    module->target = reader_u32(reader);
    CUresult result = read_kernels(module, reader);
    if (!result)
        result = place_variables(module, reader);
    if (result)
        return result;
    module->handle = handle_create(HANDLE_MODULE, module);
    if (!module->owner)
        module->library_handle = handle_create(HANDLE_LIBRARY, module);
    return module->handle && (module->owner || module->library_handle) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The server's LOAD reply for an image. */
static CUresult request_load(const void *image, size_t limit, struct reply *reply)
{
    const void *start;
    size_t bytes;
    CUresult result = image_extent(image, limit, &start, &bytes);
    if (!result)
        result = server_start();
    if (!result && !driver_has_room())
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result)
        return result;
    struct message request = {0};
    message_put_bytes(&request, start, bytes);
    result = server_call(REQUEST_LOAD, &request, reply);
    message_free(&request);
    return result;
}

CUresult module_load(const void *image, size_t limit, const struct context *owner, struct module **loaded, char **error)
{
    struct reply reply = {0};
    *error = NULL;
    CUresult result = request_load(image, limit, &reply);
    struct module *module = result ? NULL : calloc(1, sizeof *module);
    if (!result && !module)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (module) {
        module->owner = owner;
        module->next = modules;
        modules = module;
        result = read_module(module, &reply.body);
        if (result)
            module_unload(module);
    }
    if (reply.error) {
        report("%s", reply.error);
        *error = reply.error;
        reply.error = NULL;
    }
    reply_free(&reply);
    if (!result)
        *loaded = module;
    return result;
}

struct kernel *module_kernel(struct module *module, const char *name)
{
    for (uint32_t i = 0; i < module->kernel_count; i++) {
        if (strcmp(module->kernels[i].name, name) == 0)
            return &module->kernels[i];
    }
    return NULL;
}

struct variable *module_variable(struct module *module, const char *name)
{
    for (uint32_t i = 0; i < module->variable_count; i++) {
        if (strcmp(module->variables[i].name, name) == 0)
            return &module->variables[i];
    }
    return NULL;
}
