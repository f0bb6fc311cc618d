#include "map_layout.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "event_log.h"
#include "map_bits.h"
#include "real.h"
#include "signals.h"

enum { MOST_ATTEMPTS = 8 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of everything here */
static char layout[MAP_LAYOUT_SIZE]; /* written once */
static unsigned attempts;
static char text[MAP_LAYOUT_SIZE];
static size_t length;

static void add_text(const char *word)
{
    const size_t size = strlen(word);
    if (length + size < sizeof text)
        memcpy(text + length, word, size + 1);
    length += size;
}

static void add_field(const char *name, int dimension, const struct map_field *field)
{
    char word[48];
    snprintf(word, sizeof word, "%s%s%d:%d:", length ? "/" : "", name, dimension, field->bias);
    add_text(word);
    for (int k = 0, width; k < MAP_VALUE_BITS; k += width) {
        for (width = 1;
             k + width < MAP_VALUE_BITS && field->bits[k] >= 0 && field->bits[k + width] == field->bits[k] + width;)
            width++;
        if (field->bits[k] < 0)
            continue;
        snprintf(word, sizeof word, "%s%d.%d.%d", text[length - 1] == ':' ? "" : ",", field->bits[k], k, width);
        add_text(word);
    }
}

/* Adds the fields of a dimension. Returns the first that is not found, NULL if all are. */
static const char *describe_dimension(int dimension)
{
    struct map_field field;
    if (!map_bits_find_count(MAP_SIZES, dimension, 0, 32, &field))
        return "d";
    add_field("d", dimension, &field);
    if (!map_bits_find_count(MAP_BOXES, dimension, dimension ? 0 : MAP_UNIT_BITS, 8, &field))
        return "b";
    add_field("b", dimension, &field);
    if (map_bits_find_count(MAP_STEPS, dimension, 0, 3, &field))
        add_field("e", dimension, &field);
    else if (dimension) /* that of the innermost dimension may be ignored */
        return "e";
    if (dimension + 1 == MAP_RANK)
        return NULL;
    if (!map_bits_find_stride(dimension, &field))
        return "s";
    add_field("s", dimension, &field);
    return NULL;
}

static const char *describe(void)
{
    struct map_field field;
    char table[(1 << MAP_TYPE_BITS) + 1];
    for (int i = 0; i < MAP_RANK; i++) {
        const char *missing = describe_dimension(i);
        if (missing)
            return missing;
    }
    if (!map_bits_find_address(&field))
        return "a";
    add_field("a", 0, &field);
    if (!map_bits_find_types(&field, table))
        return "t";
    add_field("t", 0, &field);
    add_text("/T:");
    add_text(table);
    return length < sizeof text ? NULL : "T";
}

/* A driver may encode nothing before there is a context, so a failure is not final at first. */
static void find_layout(unsigned attempt)
{
    if (!map_bits_can_encode())
        return;
    length = 0;
    text[0] = '\0';
    const char *missing = describe();
    if (!missing) {
        memcpy(layout, text, sizeof layout);
        event_log("[tensor-map] layout %s\n", layout);
    } else if (attempt == 0) {
        event_log("[tensor-map] layout - without %s after %s\n", missing, text[0] ? text : "-");
    }
}

const char *map_layout(void)
{
    if (!real()->cuTensorMapEncodeTiled)
        return "";
    signals_lock(&mutex);
    if (!layout[0] && attempts < MOST_ATTEMPTS)
        find_layout(attempts++);
    const char *known = layout[0] ? layout : "";
    signals_unlock(&mutex);
    return known;
}

void map_layout_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
}
