#include <stdint.h>
#include <string.h>

#include "image_formats.h"

static const uint32_t CONTAINER_MAGIC = 0xba55ed50;
enum { KIND_PTX = 1, KIND_CODE = 2 };

struct container {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t entries_size;
};

struct entry {
    uint16_t kind, version;
    uint32_t header_size;
    uint64_t payload_size;
};

static bool container_of(const void *bytes, size_t limit, struct container *container)
{
    if (limit < sizeof *container)
        return false;
    memcpy(container, bytes, sizeof *container);
    return container->magic == CONTAINER_MAGIC && container->header_size >= sizeof *container;
}

/* Moves to the next entry; false at the end and at an entry that does not fit. */
static bool next_entry(const char **at, size_t *left, struct entry *entry, const char **start, size_t *size)
{
    if (*left < sizeof *entry)
        return false;
    memcpy(entry, *at, sizeof *entry);
    if (entry->header_size < sizeof *entry || entry->header_size > *left ||
        entry->payload_size > *left - entry->header_size)
        return false;
    *start = *at;
    *size = entry->header_size + (size_t)entry->payload_size;
    *at += *size;
    *left -= *size;
    return true;
}

bool fatbin_is(const void *bytes, size_t limit)
{
    uint32_t magic;
    if (limit < sizeof magic)
        return false;
    memcpy(&magic, bytes, sizeof magic);
    return magic == CONTAINER_MAGIC;
}

size_t fatbin_size(const void *bytes, size_t limit)
{
    struct container container;
    if (!container_of(bytes, limit, &container) || container.header_size > limit ||
        container.entries_size > limit - container.header_size)
        return 0;
    return container.header_size + (size_t)container.entries_size;
}

/* A word of an entry's header; 0 if the header is too short to have it. */
static uint32_t header_word(const struct entry *entry, const char *start, size_t at)
{
    uint32_t word = 0;
    if (entry->header_size >= at + sizeof word)
        memcpy(&word, start + at, sizeof word);
    return word;
}

/* The compute capability in an entry's header, 90 for 9.0. */
static uint32_t architecture_of(const struct entry *entry, const char *start)
{
    enum { ARCHITECTURE_AT = 28 };
    return header_word(entry, start, ARCHITECTURE_AT);
}

/* A target: the architecture, and in the lower bits whether code is specific to it (sm_100a) or to its family (sm_100f). */
enum { OF_FAMILY = 1, SPECIFIC = 2, ARCHITECTURE_SHIFT = 2 };

static uint32_t target_of(const struct entry *entry, const char *start)
{
    enum { FLAGS_AT = 40, SPECIFIC_FLAG = 0x100000, FAMILY_FLAG = 0x200000 };
    const uint32_t flags = header_word(entry, start, FLAGS_AT);
    const uint32_t suffix = (flags & SPECIFIC_FLAG ? SPECIFIC : 0) | (flags & FAMILY_FLAG ? OF_FAMILY : 0);
    return architecture_of(entry, start) << ARCHITECTURE_SHIFT | suffix;
}

/* Machine code runs on the same or a later minor version of its major one. */
static bool runs(uint32_t architecture, unsigned device)
{
    return architecture && architecture <= device && architecture / 10 == device / 10;
}

static bool target_runs(uint32_t target, unsigned device)
{
    const uint32_t architecture = target >> ARCHITECTURE_SHIFT;
    return target & SPECIFIC ? architecture == device : runs(architecture, device);
}

static bool is_kept(const struct entry *entry, const char *start, unsigned kept)
{
    if (entry->kind == KIND_PTX)
        return kept & FATBIN_PTX;
    kept &= ~FATBIN_PTX;
    return entry->kind == KIND_CODE && (kept == FATBIN_ANY_CODE || runs(architecture_of(entry, start), kept));
}

/* Sums the entries that are KEPT and, with COPY, writes them one after another. */
static size_t gather(const void *bytes, size_t size, unsigned kept, char *copy)
{
    struct container container;
    struct entry entry;
    const char *start;
    size_t length, total = 0;
    if (!container_of(bytes, size, &container))
        return 0;
    const char *at = (const char *)bytes + container.header_size;
    size_t left = size - container.header_size;
    while (next_entry(&at, &left, &entry, &start, &length)) {
        if (!is_kept(&entry, start, kept))
            continue;
        if (copy)
            memcpy(copy + total, start, length);
        total += length;
    }
    return total;
}

size_t fatbin_kept_size(const void *bytes, size_t size, unsigned kept)
{
    struct container container;
    size_t entries = gather(bytes, size, kept, NULL);
    return entries && container_of(bytes, size, &container) ? container.header_size + entries : 0;
}

void fatbin_copy(const void *bytes, size_t size, unsigned kept, void *copy)
{
    struct container container;
    if (!container_of(bytes, size, &container))
        return;
    container.entries_size = gather(bytes, size, kept, (char *)copy + container.header_size);
    memcpy(copy, bytes, container.header_size);
    memcpy(copy, &container, sizeof container);
}

/* Calls VISIT for each entry. */
static void each_entry(const void *bytes, size_t size,
                       void (*visit)(const struct entry *entry, const char *start, void *argument), void *argument)
{
    struct container container;
    struct entry entry;
    const char *start;
    size_t length;
    if (!container_of(bytes, size, &container))
        return;
    const char *at = (const char *)bytes + container.header_size;
    size_t left = size - container.header_size;
    while (next_entry(&at, &left, &entry, &start, &length))
        visit(&entry, start, argument);
}

/* FNV-1a. */
static void note_header(const struct entry *entry, const char *start, void *argument)
{
    uint64_t *hash = argument;
    for (uint32_t i = 0; i < entry->header_size; i++)
        *hash = (*hash ^ (unsigned char)start[i]) * 0x100000001b3;
}

uint64_t fatbin_fingerprint(const void *bytes, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325;
    each_entry(bytes, size, note_header, &hash);
    return hash;
}

static void note_larger(const struct entry *entry, const char *start, void *argument)
{
    size_t *largest = argument;
    (void)start;
    if (entry->kind == KIND_CODE && entry->payload_size > *largest)
        *largest = (size_t)entry->payload_size;
}

size_t fatbin_largest_code(const void *bytes, size_t size)
{
    size_t largest = 0;
    each_entry(bytes, size, note_larger, &largest);
    return largest;
}

static void note_code_target(const struct entry *entry, const char *start, void *argument)
{
    struct fatbin_targets *targets = argument;
    const uint32_t target = target_of(entry, start);
    if (entry->kind != KIND_CODE)
        return;
    for (size_t i = 0; i < targets->n; i++) {
        if (targets->of[i] == target)
            return;
    }
    if (targets->n < sizeof targets->of / sizeof *targets->of)
        targets->of[targets->n++] = target;
}

void fatbin_code_targets(const void *bytes, size_t size, struct fatbin_targets *targets)
{
    targets->n = 0;
    each_entry(bytes, size, note_code_target, targets);
}

/* The target of what the driver loads; 0 if it compiles the PTX. */
static uint32_t loaded_target(const struct fatbin_targets *code, unsigned device)
{
    uint32_t loaded = 0;
    for (size_t i = 0; i < code->n; i++) {
        if (target_runs(code->of[i], device) && code->of[i] > loaded)
            loaded = code->of[i];
    }
    return loaded;
}

struct ptx_question {
    unsigned device;
    uint32_t loaded; /* 0: nothing */
    uint32_t newest; /* the target of the PTX that the engine takes */
    enum fatbin_ptx best;
};

/* From 9.0 on there is PTX for one device or family only, which only its text tells. */
static enum fatbin_ptx judge(uint32_t architecture, unsigned device)
{
    enum { FIRST_WITH_SPECIFIC = 90 };
    if (architecture > device)
        return FATBIN_PTX_NEWER;
    return architecture == device || architecture < FIRST_WITH_SPECIFIC ? FATBIN_PTX_RUNS : FATBIN_PTX_MAY_RUN;
}

static void note_ptx(const struct entry *entry, const char *start, void *argument)
{
    struct ptx_question *question = argument;
    if (entry->kind != KIND_PTX)
        return;
    enum fatbin_ptx judged = judge(architecture_of(entry, start), question->device);
    if (judged > question->best)
        question->best = judged;
    const uint32_t target = target_of(entry, start);
    if (judged == FATBIN_PTX_RUNS && target > question->newest)
        question->newest = target;
}

enum fatbin_ptx fatbin_ptx_for(const void *bytes, size_t size, unsigned device, const struct fatbin_targets *code)
{
    struct ptx_question question = {.device = device, .loaded = loaded_target(code, device)};
    each_entry(bytes, size, note_ptx, &question);
    const bool runs_other = question.best == FATBIN_PTX_RUNS && question.loaded && question.loaded != question.newest;
    return runs_other ? FATBIN_PTX_OF_OTHER_CODE : question.best;
}
