#include "kept_description.h"

#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "parameters.h"
#include "real.h"
#include "reasons.h"

static size_t packed_size(const struct parameter *parameters, size_t n)
{
    size_t size = 0;
    for (size_t i = 0; i < n; i++)
        if (parameters[i].offset + parameters[i].size > size)
            size = parameters[i].offset + parameters[i].size;
    return size;
}

/* The buffer that the program passed; it may end within the last parameter. */
static const struct reason *copy_buffer(void *const *extra, struct packed_parameters *packed)
{
    const void *buffer = NULL;
    size_t size = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            memcpy(&size, extra[1], sizeof size);
        else
            return reason(PARAMETERS_OF_UNKNOWN_KIND);
    }
    if (size > packed->size || !packed->bytes) {
        free(packed->bytes);
        if (!(packed->bytes = calloc(1, size + 1)))
            return reason(HOST_MEMORY);
        packed->size = size;
    }
    if (buffer && size)
        memcpy(packed->bytes, buffer, size);
    return NULL;
}

const struct reason *kept_parameters(const struct launch *launch, CUfunction function, struct packed_parameters *packed)
{
    struct parameter *list = NULL;
    size_t n = 0;
    *packed = (struct packed_parameters){0};
    const bool known = parameters_read(function, NULL, &list, &n);
    if (!known && !launch->extra)
        return reason(PARAMETERS_UNKNOWN);
    packed->size = known ? packed_size(list, n) : 0;
    packed->bytes = calloc(1, packed->size + 1);
    const struct reason *reason = packed->bytes ? NULL : reason(HOST_MEMORY);
    if (!reason && launch->extra)
        reason = copy_buffer(launch->extra, packed);
    else if (!reason && n && !launch->parameters)
        reason = reason(PARAMETERS_MISSING);
    for (size_t i = 0; i < n && !reason && !launch->extra; i++)
        memcpy(packed->bytes + list[i].offset, launch->parameters[i], list[i].size);
    free(list);
    return reason;
}

static void put_bytes(FILE *text, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        fprintf(text, "%02x", ((const unsigned char *)bytes)[i]);
    fputc('\n', text);
}

/* Names are percent-encoded: one in a damaged image may have any bytes. */
static void put_name(FILE *text, const char *name)
{
    for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
        if (*c <= ' ' || *c > '~' || *c == '%')
            fprintf(text, "%%%02x", *c);
        else
            fputc(*c, text);
    }
}

static void put_function_attributes(FILE *text, CUfunction function)
{
    static const int attributes[] = {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                     CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                     CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
                                     CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH + 1,
                                     CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH + 2,
                                     CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                                     CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE};
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        int value;
        if (REAL_OR_NOT_FOUND(cuFuncGetAttribute, &value, attributes[i], function) == CUDA_SUCCESS)
            fprintf(text, "function-attribute %d %d\n", attributes[i], value);
    }
}

/* True for attributes whose values mean the same in another process: neither handles, nor relations to other kernels. */
static bool can_be_repeated(uint32_t id)
{
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return true;
    default:
        return false;
    }
}

static void put_launch_attributes(FILE *text, const struct launch *launch)
{
    const CUlaunchAttribute cooperative = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    const bool extended = launch->form == LAUNCH_EX;
    const CUlaunchAttribute *attributes = extended ? launch->config->attrs : &cooperative;
    const size_t n = extended ? launch->config->numAttrs : launch->form == LAUNCH_COOPERATIVE;
    for (size_t i = 0; i < n; i++) {
        if (can_be_repeated(attributes[i].id)) {
            fprintf(text, "launch-attribute %u ", attributes[i].id);
            put_bytes(text, attributes[i].value.bytes, sizeof attributes[i].value.bytes);
        } else {
            fprintf(text, "left-out %u\n", attributes[i].id);
        }
    }
}

static void put_limits(FILE *text)
{
    static const int limits[] = {CU_LIMIT_STACK_SIZE, CU_LIMIT_MALLOC_HEAP_SIZE};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        size_t value;
        if (REAL_OR_NOT_FOUND(cuCtxGetLimit, &value, limits[i]) == CUDA_SUCCESS)
            fprintf(text, "limit %d %zu\n", limits[i], value);
    }
}

void kept_describe_launch(FILE *text, const struct launch *launch, const struct kernel *kernel, CUfunction function,
                          const struct packed_parameters *packed)
{
    char architecture[16];
    CUdevice device;
    fputs("kernel ", text);
    put_name(text, kernel->name);
    fprintf(text, "\ngrid %u %u %u\nblock %u %u %u\nshared %u\n", launch->grid[0], launch->grid[1], launch->grid[2],
            launch->block[0], launch->block[1], launch->block[2], launch->shared);
    if (REAL_OR_NOT_FOUND(cuCtxGetDevice, &device) == CUDA_SUCCESS &&
        device_architecture(device, architecture, sizeof architecture))
        fprintf(text, "architecture %s\n", architecture);
    if (kernel->identity.options)
        fputs("load-options\n", text);
    fputs("parameters ", text);
    put_bytes(text, packed->bytes, packed->size);
    put_function_attributes(text, function);
    put_launch_attributes(text, launch);
    put_limits(text);
}

void kept_describe_variable(FILE *text, const char *name, size_t size)
{
    fputs("variable ", text);
    put_name(text, name);
    fprintf(text, " %zu\n", size);
}

void kept_describe_memory(FILE *text, const struct reach *reach)
{
    static const char *const kinds[] = {[ALLOCATION_DEVICE] = "device",
                                        [ALLOCATION_MANAGED] = "managed",
                                        [ALLOCATION_HOST] = "host",
                                        [ALLOCATION_MAPPED] = "mapped"};
    for (size_t i = 0; i < reach->n; i++) {
        const struct reached *reached = reach_get(reach, i);
        fprintf(text, "memory %llx %zu %s\n", reached->memory, reached->size, kinds[reached->kind]);
    }
    for (size_t i = 0; i < reach->n_unknown && i < UNKNOWN_SHOWN; i++)
        fprintf(text, "unknown %llx\n", reach->unknown[i]);
}
