#include "map_layout.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "event_log.h"
#include "real.h"
#include "signals.h"

enum {
    RANK = 5,
    TYPES = 13, /* of CUtensorMapDataType: those whose elements are whole bytes */
    TYPE_WIDTH = 5,
    DOUBLES = 8, /* another of them, of 8 bytes */
    LARGEST_BOX = 256,
    CERTAIN_BITS = 32,
    ADDRESS_BITS = 57,
    STRIDE_BITS = 40,
    MOST_BITS = 64,
    UNIT = 16, /* bytes that addresses and strides are multiples of, and boxes of bytes */
    UNIT_BITS = 4
};

struct parameters {
    int type;
    uint32_t rank;
    uint64_t address, sizes[RANK], strides[RANK - 1];
    uint32_t box[RANK], steps[RANK];
};

struct bits {
    uint8_t byte[CU_TENSOR_MAP_BYTES];
};

/* Of each bit of a value its bit in the map, -1 for none. */
struct field {
    int bits[MOST_BITS];
    int bias;
};

static struct field no_bits(void)
{
    struct field field = {.bias = 0};
    memset(field.bits, -1, sizeof field.bits);
    return field;
}

static const char LOG_BYTES[TYPES + 1] = "0122331231222"; /* u8 u16 u32 s32 u64 s64 f16 f32 f64 bf16 ftz tf32 ftz */

static bool encode(const struct parameters *p, struct bits *map)
{
    _Alignas(64) uint8_t made[CU_TENSOR_MAP_BYTES] = {0};
    if (REAL_OR_NOT_FOUND(cuTensorMapEncodeTiled, made, p->type, p->rank, p->address, p->sizes, p->strides, p->box,
                          p->steps, 0, 0, 0, 0) != CUDA_SUCCESS)
        return false;
    memcpy(map->byte, made, sizeof made);
    return true;
}

static bool bit_of(const struct bits *map, int bit)
{
    return map->byte[bit / 8] >> (bit % 8) & 1;
}

/* Adds the bits in which the maps of A and B differ to CHANGED, or leaves only those. */
static bool take_changes(const struct parameters *a, const struct parameters *b, bool only, struct bits *changed)
{
    struct bits first, second;
    if (!encode(a, &first) || !encode(b, &second))
        return false;
    for (int i = 0; i < CU_TENSOR_MAP_BYTES; i++) {
        const uint8_t byte = first.byte[i] ^ second.byte[i];
        changed->byte[i] = only ? changed->byte[i] & byte : changed->byte[i] | byte;
    }
    return true;
}

/* Writes up to MOST positions of bits that are set. Returns how many are. */
static int positions(const struct bits *bits, int found[], int most)
{
    int n = 0;
    for (int i = 0; i < CU_TENSOR_MAP_BYTES; i++)
        for (unsigned left = bits->byte[i]; left; left &= left - 1, n++)
            if (n < most)
                found[n] = 8 * i + __builtin_ctz(left);
    return n;
}

/* The number of bits in which the maps of A and B differ, for any size of an element: a map also has the bytes of
 * its box. FOUND are the first two. -1 if one is not encoded. */
static int differ(struct parameters a, struct parameters b, int found[2])
{
    struct bits changed = {{0}};
    for (int i = 0; i < 2; i++) {
        a.type = b.type = i ? DOUBLES : 0;
        if (!take_changes(&a, &b, i, &changed))
            return -1;
    }
    return positions(&changed, found, 2);
}

/* The bit of the map in which A and B differ; -1 if they differ in none or in several. */
static int only_difference(const struct parameters *a, const struct parameters *b)
{
    int found[2];
    return differ(*a, *b, found) == 1 ? found[0] : -1;
}

/* Maps of one box of bytes, of the smallest size otherwise. */
static struct parameters smallest(void)
{
    struct parameters p = {.rank = RANK, .address = (uint64_t)1 << 46, .box = {UNIT, 1, 1, 1, 1}};
    for (int i = 0; i < RANK; i++) {
        p.sizes[i] = 1;
        p.steps[i] = 1;
        if (i + 1 < RANK)
            p.strides[i] = (uint64_t)1 << (STRIDE_BITS - 1);
    }
    return p;
}

enum kind { SIZES, BOXES, STEPS };

static int compare(enum kind kind, int dimension, uint64_t first, uint64_t second, int found[2])
{
    struct parameters p[2] = {smallest(), smallest()};
    for (int i = 0; i < 2; i++) {
        const uint64_t value = i ? second : first;
        if (kind == SIZES)
            p[i].sizes[dimension] = value;
        else
            (kind == BOXES ? p[i].box : p[i].steps)[dimension] = (uint32_t)value;
    }
    return differ(p[0], p[1], found);
}

/* A parameter that counts from 1, in consecutive bits, as it is or less 1. The first bits, of the unit and above, tell
 * the others; a few of these are compared. */
static bool find_count(enum kind kind, int dimension, int unit_bits, int width, struct field *field)
{
    const uint64_t unit = (uint64_t)1 << unit_bits;
    int found[2], next[2];
    *field = no_bits();
    const int n = compare(kind, dimension, unit, 2 * unit, found);
    if (compare(kind, dimension, unit, 3 * unit, next) != 1 || (n != 1 && n != 2))
        return false;
    field->bias = n == 1;
    const int first = next[0] - 1;
    if (found[0] != first || (n == 2 && found[1] != next[0]))
        return false;
    for (int k = unit_bits + 2; k < width; k = k < 4 || k + 8 >= width ? k + 1 : k + 8)
        if (compare(kind, dimension, unit, unit + ((uint64_t)1 << k), next) != 1 || next[0] != first + k - unit_bits)
            return false;
    const int last = !field->bias && width < 32 ? width : width - 1; /* the maximum of a box is a power of 2 */
    for (int k = 0; k <= last; k++)
        field->bits[k] = first + k - unit_bits;
    return true;
}

static bool find_stride(int dimension, struct field *field)
{
    *field = no_bits();
    for (int k = UNIT_BITS; k < STRIDE_BITS; k++) {
        struct parameters a = smallest(), b;
        a.rank = (uint32_t)dimension + 2; /* strides shall be multiples of those before */
        for (int i = 0; i < dimension; i++)
            a.strides[i] = UNIT;
        a.strides[dimension] = k == UNIT_BITS ? 2 * UNIT : UNIT;
        b = a;
        b.strides[dimension] += (uint64_t)1 << k;
        field->bits[k] = only_difference(&a, &b);
        if (field->bits[k] < 0 && k < CERTAIN_BITS)
            return false;
    }
    return true;
}

static bool find_address(struct field *field)
{
    *field = no_bits();
    for (int k = UNIT_BITS; k < ADDRESS_BITS; k++) {
        struct parameters a = smallest(), b;
        a.address = (uint64_t)1 << (k == 46 ? 45 : 46);
        b = a;
        b.address += (uint64_t)1 << k;
        field->bits[k] = only_difference(&a, &b);
        if (field->bits[k] < 0 && k < CERTAIN_BITS)
            return false;
    }
    return true;
}

/* The bits in which maps of different types differ, for any box. */
static int type_bits(int found[TYPE_WIDTH])
{
    struct bits both = {{0}};
    for (int large = 0; large < 2; large++) {
        struct bits changed = {{0}};
        for (int type = 1; type < TYPES; type++) {
            struct parameters first = smallest(), other;
            first.box[0] = large ? LARGEST_BOX : UNIT;
            other = first;
            other.type = type;
            if (!take_changes(&first, &other, false, &changed))
                return 0;
        }
        for (int i = 0; i < CU_TENSOR_MAP_BYTES; i++)
            both.byte[i] = large ? both.byte[i] & changed.byte[i] : changed.byte[i];
    }
    return positions(&both, found, TYPE_WIDTH);
}

/* The bits of the type, and TABLE: LOG_BYTES by their value. */
static bool find_types(struct field *field, char table[(1 << TYPE_WIDTH) + 1])
{
    int found[TYPE_WIDTH];
    const int n = type_bits(found);
    if (n < 1 || n > TYPE_WIDTH)
        return false;
    *field = no_bits();
    for (int k = 0; k < n; k++)
        field->bits[k] = found[k];
    memset(table, '-', 1 << TYPE_WIDTH);
    table[1 << TYPE_WIDTH] = '\0';
    for (int type = 0; type < TYPES; type++) {
        struct parameters p = smallest();
        struct bits map;
        unsigned value = 0;
        p.type = type;
        if (!encode(&p, &map))
            return false;
        for (int k = 0; k < n; k++)
            value |= (unsigned)bit_of(&map, found[k]) << k;
        table[value] = LOG_BYTES[type];
    }
    return true;
}

enum { MOST_ATTEMPTS = 8 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* for what follows */
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

static void add_field(const char *name, int dimension, const struct field *field)
{
    char word[48];
    snprintf(word, sizeof word, "%s%s%d:%d:", length ? "/" : "", name, dimension, field->bias);
    add_text(word);
    for (int k = 0, width; k < MOST_BITS; k += width) {
        for (width = 1;
             k + width < MOST_BITS && field->bits[k] >= 0 && field->bits[k + width] == field->bits[k] + width;)
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
    struct field field;
    if (!find_count(SIZES, dimension, 0, 32, &field))
        return "d";
    add_field("d", dimension, &field);
    if (!find_count(BOXES, dimension, dimension ? 0 : UNIT_BITS, 8, &field))
        return "b";
    add_field("b", dimension, &field);
    if (find_count(STEPS, dimension, 0, 3, &field))
        add_field("e", dimension, &field);
    else if (dimension) /* that of the innermost dimension may be ignored */
        return "e";
    if (dimension + 1 == RANK)
        return NULL;
    if (!find_stride(dimension, &field))
        return "s";
    add_field("s", dimension, &field);
    return NULL;
}

static const char *describe(void)
{
    struct field field;
    char table[(1 << TYPE_WIDTH) + 1];
    for (int i = 0; i < RANK; i++) {
        const char *missing = describe_dimension(i);
        if (missing)
            return missing;
    }
    if (!find_address(&field))
        return "a";
    add_field("a", 0, &field);
    if (!find_types(&field, table))
        return "t";
    add_field("t", 0, &field);
    add_text("/T:");
    add_text(table);
    return length < sizeof text ? NULL : "T";
}

/* A driver may encode nothing before there is a context, so a failure is not final at first. */
static void find_layout(unsigned attempt)
{
    const struct parameters any = smallest();
    struct bits map;
    if (!encode(&any, &map))
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
