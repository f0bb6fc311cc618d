#include "map_layout.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "event_log.h"
#include "real.h"

enum {
    RANK = 5,
    TYPES = 13, /* of CUtensorMapDataType: those whose elements are whole bytes */
    TYPE_WIDTH = 5,
    ADDRESS_BITS = 57,
    STRIDE_BITS = 40,
    MOST_BITS = 64,
    UNIT = 16, /* bytes that addresses and strides are multiples of, and boxes of bytes */
    UNIT_BITS = 4
};

struct parameters {
    int type;
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
    if (REAL_OR_NOT_FOUND(cuTensorMapEncodeTiled, made, p->type, RANK, p->address, p->sizes, p->strides, p->box,
                          p->steps, 0, 0, 0, 0) != CUDA_SUCCESS)
        return false;
    memcpy(map->byte, made, sizeof made);
    return true;
}

static bool bit_of(const struct bits *map, int bit)
{
    return map->byte[bit / 8] >> (bit % 8) & 1;
}

/* The number of bits in which the maps of A and B differ; FOUND are the first two. -1 if one is not encoded. */
static int differ(const struct parameters *a, const struct parameters *b, int found[2])
{
    struct bits first, second;
    int n = 0;
    if (!encode(a, &first) || !encode(b, &second))
        return -1;
    for (int i = 0; i < CU_TENSOR_MAP_BYTES; i++)
        for (unsigned left = first.byte[i] ^ second.byte[i]; left; left &= left - 1, n++)
            if (n < 2)
                found[n] = 8 * i + __builtin_ctz(left);
    return n;
}

/* The bit of the map in which A and B differ; -1 if they differ in none or in several. */
static int only_difference(const struct parameters *a, const struct parameters *b)
{
    int found[2];
    return differ(a, b, found) == 1 ? found[0] : -1;
}

/* Maps of one box of bytes, of the smallest size otherwise. */
static struct parameters smallest(void)
{
    struct parameters p = {.address = (uint64_t)1 << 46, .box = {UNIT, 1, 1, 1, 1}};
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
    return differ(&p[0], &p[1], found);
}

/* A parameter that counts from 1, encoded as it is or less 1. Bits below its unit follow those above. */
static bool find_count(enum kind kind, int dimension, int unit_bits, int width, struct field *field)
{
    const uint64_t unit = (uint64_t)1 << unit_bits;
    int found[2];
    *field = no_bits();
    for (int k = unit_bits + 1; k < width; k++) {
        if (compare(kind, dimension, unit, unit + ((uint64_t)1 << k), found) != 1)
            return false;
        field->bits[k] = found[0];
    }
    const int n = compare(kind, dimension, unit, 2 * unit, found);
    if (n != 1 && n != 2)
        return false;
    field->bias = n == 1;
    field->bits[unit_bits] = n == 1 || found[1] == field->bits[unit_bits + 1] ? found[0] : found[1];
    for (int k = unit_bits - 1; k >= 0; k--)
        field->bits[k] = field->bits[k + 1] - 1;
    if (!field->bias && width < 32) /* the maximum is a power of 2 */
        field->bits[width] = field->bits[width - 1] + 1;
    return true;
}

static void find_stride(int dimension, struct field *field)
{
    *field = no_bits();
    for (int k = UNIT_BITS; k < STRIDE_BITS; k++) {
        struct parameters a = smallest(), b;
        for (int i = 0; i < RANK - 1; i++)
            a.strides[i] = i < dimension ? UNIT : ((uint64_t)1 << STRIDE_BITS) - UNIT;
        a.strides[dimension] = k == UNIT_BITS ? 2 * UNIT : UNIT;
        b = a;
        b.strides[dimension] += (uint64_t)1 << k;
        field->bits[k] = only_difference(&a, &b);
    }
}

static void find_address(struct field *field)
{
    *field = no_bits();
    for (int k = UNIT_BITS; k < ADDRESS_BITS; k++) {
        struct parameters a = smallest(), b;
        a.address = (uint64_t)1 << (k == 46 ? 45 : 46);
        b = a;
        b.address += (uint64_t)1 << k;
        field->bits[k] = only_difference(&a, &b);
    }
}

/* The bits in which maps of different types differ, and TABLE: LOG_BYTES by their value. */
static bool find_types(struct field *field, char table[(1 << TYPE_WIDTH) + 1])
{
    struct bits maps[TYPES], changed = {{0}};
    int low = -1, high = -1;
    for (int type = 0; type < TYPES; type++) {
        struct parameters p = smallest();
        p.type = type;
        if (!encode(&p, &maps[type]))
            return false;
        for (int i = 0; i < CU_TENSOR_MAP_BYTES; i++)
            changed.byte[i] |= maps[type].byte[i] ^ maps[0].byte[i];
    }
    for (int bit = 0; bit < 8 * CU_TENSOR_MAP_BYTES; bit++)
        if (bit_of(&changed, bit)) {
            low = low < 0 ? bit : low;
            high = bit;
        }
    if (low < 0 || high - low >= TYPE_WIDTH)
        return false;
    *field = no_bits();
    for (int k = 0; k <= high - low; k++)
        field->bits[k] = low + k;
    memset(table, '-', 1 << TYPE_WIDTH);
    table[1 << TYPE_WIDTH] = '\0';
    for (int type = 0; type < TYPES; type++) {
        unsigned value = 0;
        for (int bit = low; bit <= high; bit++)
            value |= (unsigned)bit_of(&maps[type], bit) << (bit - low);
        table[value] = LOG_BYTES[type];
    }
    return true;
}

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

static bool describe(void)
{
    struct field field;
    char table[(1 << TYPE_WIDTH) + 1];
    for (int i = 0; i < RANK; i++) {
        if (!find_count(SIZES, i, 0, 32, &field))
            return false;
        add_field("d", i, &field);
        if (!find_count(BOXES, i, i ? 0 : UNIT_BITS, 8, &field))
            return false;
        add_field("b", i, &field);
        if (find_count(STEPS, i, 0, 3, &field)) /* that of the innermost dimension may be ignored */
            add_field("e", i, &field);
        else if (i)
            return false;
        if (i + 1 < RANK) {
            find_stride(i, &field);
            add_field("s", i, &field);
        }
    }
    find_address(&field);
    add_field("a", 0, &field);
    if (!find_types(&field, table))
        return false;
    add_field("t", 0, &field);
    add_text("/T:");
    add_text(table);
    return length < sizeof text;
}

static void find_layout(void)
{
    if (!real()->cuTensorMapEncodeTiled)
        return;
    if (!describe())
        text[0] = '\0';
    event_log("[tensor-map] layout %s\n", text[0] ? text : "-");
}

const char *map_layout(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_layout);
    return text;
}
