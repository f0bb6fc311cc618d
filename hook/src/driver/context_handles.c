#include "context_handles.h"

#include <stdlib.h>

#include "real.h"

struct entry {
    struct entry *next;
    struct handle_table *table;
    const void *handle;
    void *value;
    CUcontext context;
    bool leaving;
};

static struct entry *entries;

void context_handles_put(struct handle_table *table, const void *handle, void *value)
{
    struct entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return; /* found again through the driver when it is needed */
    *entry = (struct entry){.next = entries, .table = table, .handle = handle, .value = value};
    if (REAL_OR_NOT_FOUND(cuCtxGetCurrent, &entry->context) != CUDA_SUCCESS ||
        !handle_table_put(table, handle, value)) {
        free(entry);
        return;
    }
    entries = entry;
}

void context_handles_remove(struct handle_table *table, bool (*matches)(const void *value, const void *wanted),
                            const void *wanted)
{
    for (struct entry **at = &entries; *at;) {
        struct entry *entry = *at;
        if (entry->table != table || !matches(entry->value, wanted)) {
            at = &entry->next;
            continue;
        }
        *at = entry->next;
        free(entry);
    }
}

void context_handles_leave(CUcontext context, bool leaves)
{
    for (struct entry *entry = entries; entry; entry = entry->next)
        if (entry->context == context)
            entry->leaving = leaves;
}

void context_handles_forget(CUcontext context)
{
    for (struct entry **at = &entries; *at;) {
        struct entry *entry = *at;
        if (!entry->leaving || entry->context != context) {
            at = &entry->next;
            continue;
        }
        *at = entry->next;
        handle_table_drop(entry->table, entry->handle, entry->value);
        free(entry);
    }
}

void context_handles_reset(void)
{
    entries = NULL;
}
