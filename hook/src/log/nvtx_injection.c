/* The functions that NVTX calls in place of its own, once the program uses it. */
#include <stdint.h>
#include <wchar.h>

#include "hook_state.h"
#include "nvtx.h"
#include "nvtx_abi.h"
#include "nvtx_text.h"

static int range_push(const char *text)
{
    nvtx_push(NULL, nvtx_text(text));
    return NVTX_NO_PUSH_POP_TRACKING;
}

static int range_push_wide(const wchar_t *text)
{
    nvtx_push(NULL, nvtx_wide_text(text));
    return NVTX_NO_PUSH_POP_TRACKING;
}

static int range_push_ex(const struct nvtx_attributes *attributes)
{
    nvtx_push(NULL, nvtx_message(attributes));
    return NVTX_NO_PUSH_POP_TRACKING;
}

static int range_pop(void)
{
    nvtx_pop(NULL);
    return NVTX_NO_PUSH_POP_TRACKING;
}

static uint64_t range_start(const char *text)
{
    return nvtx_start(NULL, nvtx_text(text));
}

static uint64_t range_start_wide(const wchar_t *text)
{
    return nvtx_start(NULL, nvtx_wide_text(text));
}

static uint64_t range_start_ex(const struct nvtx_attributes *attributes)
{
    return nvtx_start(NULL, nvtx_message(attributes));
}

static int domain_push(const struct nvtx_domain *domain, const struct nvtx_attributes *attributes)
{
    nvtx_push(domain, nvtx_message(attributes));
    return NVTX_NO_PUSH_POP_TRACKING;
}

static int domain_pop(const struct nvtx_domain *domain)
{
    nvtx_pop(domain);
    return NVTX_NO_PUSH_POP_TRACKING;
}

static uint64_t domain_start(const struct nvtx_domain *domain, const struct nvtx_attributes *attributes)
{
    return nvtx_start(domain, nvtx_message(attributes));
}

static void domain_end(const struct nvtx_domain *domain, uint64_t id)
{
    (void)domain;
    nvtx_end(id);
}

struct entry {
    unsigned int place;
    nvtx_function function;
};

static const struct entry core[] = {
    {NVTX_CORE_RANGE_START_EX, (nvtx_function)range_start_ex},  {NVTX_CORE_RANGE_START_A, (nvtx_function)range_start},
    {NVTX_CORE_RANGE_START_W, (nvtx_function)range_start_wide}, {NVTX_CORE_RANGE_END, (nvtx_function)nvtx_end},
    {NVTX_CORE_RANGE_PUSH_EX, (nvtx_function)range_push_ex},    {NVTX_CORE_RANGE_PUSH_A, (nvtx_function)range_push},
    {NVTX_CORE_RANGE_PUSH_W, (nvtx_function)range_push_wide},   {NVTX_CORE_RANGE_POP, (nvtx_function)range_pop},
};

static const struct entry core2[] = {
    {NVTX_CORE2_DOMAIN_RANGE_START_EX, (nvtx_function)domain_start},
    {NVTX_CORE2_DOMAIN_RANGE_END, (nvtx_function)domain_end},
    {NVTX_CORE2_DOMAIN_RANGE_PUSH_EX, (nvtx_function)domain_push},
    {NVTX_CORE2_DOMAIN_RANGE_POP, (nvtx_function)domain_pop},
    {NVTX_CORE2_DOMAIN_REGISTER_STRING_A, (nvtx_function)nvtx_register_string},
    {NVTX_CORE2_DOMAIN_REGISTER_STRING_W, (nvtx_function)nvtx_register_wide_string},
    {NVTX_CORE2_DOMAIN_CREATE_A, (nvtx_function)nvtx_create_domain},
    {NVTX_CORE2_DOMAIN_CREATE_W, (nvtx_function)nvtx_create_wide_domain},
};

static void fill(const struct nvtx_callbacks *callbacks, int module, const struct entry *entries, size_t n)
{
    nvtx_function **table;
    unsigned int size;
    if (!callbacks->function_table(module, &table, &size))
        return;
    for (size_t i = 0; i < n; i++)
        if (entries[i].place < size && table[entries[i].place])
            *table[entries[i].place] = entries[i].function;
}

/* NVTX calls this at its first use in the process, having found us by NVTX_INJECTION64_PATH. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(nvtx_export_table export_table)
{
    const struct nvtx_callbacks *callbacks = export_table(NVTX_TABLE_CALLBACKS);
    if (!hook_active() || !callbacks || callbacks->size < sizeof *callbacks)
        return 0;
    fill(callbacks, NVTX_MODULE_CORE, core, sizeof core / sizeof *core);
    fill(callbacks, NVTX_MODULE_CORE2, core2, sizeof core2 / sizeof *core2);
    return 1;
}
