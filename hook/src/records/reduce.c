#include "reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const levels[] = {"", "warp", "block", "launch"};
static const char *const operations[] = {"sum", "min", "max", "first", "same", "span"};
enum { LEVELS = sizeof levels / sizeof *levels, OPERATIONS = sizeof operations / sizeof *operations, NAME = 8 };
enum { MOST_FIELDS = 1024, LARGEST_RECORD = 8192 };

static size_t found(const char *const *names, size_t n, const char *name)
{
    size_t i = 0;
    while (i < n && strcmp(names[i], name) != 0)
        i++;
    return i;
}

/* "u64@8", and what is behind it; NULL if it does not belong in a record of SIZE bytes. */
static const char *read_place(const char *text, uint32_t size, struct place *place)
{
    unsigned bits = 0;
    unsigned long offset = 0;
    int length = 0;
    if (sscanf(text, "u%u@%lu%n", &bits, &offset, &length) != 2 || (bits != 32 && bits != 64) || offset > size ||
        size - offset < bits / 8)
        return NULL;
    *place = (struct place){(uint32_t)offset, bits == 64};
    return text + length;
}

static const char *read_field(const char *text, uint32_t size, uint32_t record, struct reduced_field *field)
{
    const char *end = strchr(text, ':');
    char name[NAME] = "";
    if (!end || (size_t)(end - text) >= sizeof name)
        return NULL;
    memcpy(name, text, (size_t)(end - text));
    const size_t operation = found(operations, OPERATIONS, name);
    if (operation == OPERATIONS || !(end = read_place(end + 1, record, &field->to)) || *end != ':' ||
        !(end = read_place(end + 1, size, &field->from)))
        return NULL;
    field->operation = (enum reduce_operation)operation;
    if (field->operation == REDUCE_SPAN && (*end != ':' || !(end = read_place(end + 1, size, &field->base))))
        return NULL;
    return end;
}

static size_t count_fields(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == ' ' && text[1] && text[1] != ' ';
    return n;
}

struct reduction *reduction_parse(const char *text, uint32_t size)
{
    char name[NAME] = "";
    unsigned long record = 0;
    int length = 0;
    if (sscanf(text, "%7s record %lu%n", name, &record, &length) != 2 || !record || record > LARGEST_RECORD)
        return NULL;
    const size_t level = found(levels, LEVELS, name), n = count_fields(text + length);
    if (!level || level == LEVELS || !n || n > MOST_FIELDS)
        return NULL;
    struct reduction *made = calloc(1, sizeof *made + n * sizeof *made->fields);
    if (!made)
        return NULL;
    *made = (struct reduction){.level = (enum reduce_level)level, .record = (uint32_t)record, .n = n};
    text += length;
    for (size_t i = 0; i < n && text; i++)
        text = *text == ' ' ? read_field(text + 1, size, made->record, &made->fields[i]) : NULL;
    if (text && !*text)
        return made;
    free(made);
    return NULL;
}

bool reduce_start(struct reducing *reducing, const struct reduction *reduction)
{
    *reducing = (struct reducing){.reduction = reduction, .fields = calloc(reduction->n, sizeof *reducing->fields)};
    return reducing->fields;
}

void reduce_stop(struct reducing *reducing)
{
    free(reducing->fields);
}

void reduce_begin(struct reducing *reducing)
{
    reducing->saved = 0;
    reducing->mixed = false;
    for (size_t i = 0; i < reducing->reduction->n; i++) {
        const enum reduce_operation operation = reducing->reduction->fields[i].operation;
        const bool least = operation == REDUCE_MIN || operation == REDUCE_SPAN;
        reducing->fields[i] = (struct reduced){.value = least ? UINT64_MAX : 0};
    }
}

static inline uint64_t value_at(const uint8_t *record, const struct place *place)
{
    uint64_t wide;
    uint32_t narrow;
    if (place->wide)
        memcpy(&wide, record + place->offset, sizeof wide);
    else {
        memcpy(&narrow, record + place->offset, sizeof narrow);
        wide = narrow;
    }
    return wide;
}

static inline bool is_saved(const struct slots *slots, size_t i)
{
    uint32_t mark = 1;
    if (slots->marked)
        memcpy(&mark, slots->bytes + i * slots->stride + slots->mark, sizeof mark);
    return mark;
}

/* A record's part in a field; FIRST: none of the group was saved before it. The operation is one that the compiler
 * knows, so that the loop over records has no choice in it. */
static inline void take(struct reduced *into, enum reduce_operation operation, uint64_t value, uint64_t base,
                        bool first, bool *mixed)
{
    switch (operation) {
    case REDUCE_SUM:
        into->value += value;
        break;
    case REDUCE_MIN:
        into->value = value < into->value ? value : into->value;
        break;
    case REDUCE_MAX:
        into->value = value > into->value ? value : into->value;
        break;
    case REDUCE_SPAN:
        into->value = base < into->value ? base : into->value;
        into->end = base + value > into->end ? base + value : into->end;
        break;
    case REDUCE_SAME:
    case REDUCE_FIRST:
        into->value = first ? value : into->value;
        *mixed |= operation == REDUCE_SAME && value != into->value;
    }
}

static inline void add_with(struct reducing *reducing, size_t field, const struct slots *slots,
                            enum reduce_operation operation)
{
    const struct reduced_field *f = &reducing->reduction->fields[field];
    struct reduced into = reducing->fields[field];
    bool first = !reducing->saved;
    for (size_t i = 0; i < slots->n; i++) {
        const uint8_t *record = slots->bytes + i * slots->stride;
        if (!is_saved(slots, i))
            continue;
        const uint64_t base = operation == REDUCE_SPAN ? value_at(record, &f->base) : 0;
        take(&into, operation, value_at(record, &f->from), base, first, &reducing->mixed);
        first = false;
    }
    reducing->fields[field] = into;
}

static void add_field(struct reducing *reducing, size_t field, const struct slots *slots)
{
    switch (reducing->reduction->fields[field].operation) {
    case REDUCE_SUM:
        add_with(reducing, field, slots, REDUCE_SUM);
        break;
    case REDUCE_MIN:
        add_with(reducing, field, slots, REDUCE_MIN);
        break;
    case REDUCE_MAX:
        add_with(reducing, field, slots, REDUCE_MAX);
        break;
    case REDUCE_FIRST:
        add_with(reducing, field, slots, REDUCE_FIRST);
        break;
    case REDUCE_SAME:
        add_with(reducing, field, slots, REDUCE_SAME);
        break;
    case REDUCE_SPAN:
        add_with(reducing, field, slots, REDUCE_SPAN);
    }
}

void reduce_add(struct reducing *reducing, const struct slots *slots)
{
    for (size_t field = 0; field < reducing->reduction->n; field++)
        add_field(reducing, field, slots);
    for (size_t i = 0; i < slots->n; i++)
        reducing->saved += is_saved(slots, i);
}

static void put(uint8_t *record, const struct place *place, uint64_t value)
{
    const uint32_t narrow = (uint32_t)value;
    if (place->wide)
        memcpy(record + place->offset, &value, sizeof value);
    else
        memcpy(record + place->offset, &narrow, sizeof narrow);
}

void reduce_end(const struct reducing *reducing, uint8_t *record)
{
    const struct reduction *reduction = reducing->reduction;
    memset(record, 0, reduction->record);
    for (size_t i = 0; i < reduction->n && reducing->saved; i++) {
        const struct reduced *field = &reducing->fields[i];
        const bool span = reduction->fields[i].operation == REDUCE_SPAN;
        put(record, &reduction->fields[i].to, span ? field->end - field->value : field->value);
    }
}
