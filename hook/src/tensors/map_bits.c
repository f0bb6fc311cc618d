#include "map_bits.h"

#include <string.h>

#include "cuda_abi.h"
#include "real.h"

enum {
    TYPES = 13,        /* of CUtensorMapDataType: those whose elements are whole bytes */
    DOUBLES = 8,       /* another of them, of 8 bytes */
    LARGEST_BOX = 256, /* elements in a dimension, by cuTensorMapEncodeTiled */
    CERTAIN_BITS = 32, /* of an address or stride, which must be found; the driver may refuse values with higher ones */
    ADDRESS_BITS = 57, /* of a virtual address with five levels of page tables */
    STRIDE_BITS = 40, /* strides are less than 2^40 bytes, by cuTensorMapEncodeTiled */
    UNIT = 1 << MAP_UNIT_BITS
};

struct parameters {
    int type;
    uint32_t rank;
    uint64_t address, sizes[MAP_RANK], strides[MAP_RANK - 1];
    uint32_t box[MAP_RANK], steps[MAP_RANK];
};

struct bits {
    uint8_t byte[CU_TENSOR_MAP_BYTES];
};

static struct map_field no_bits(void)
{
    struct map_field field = {.bias = 0};
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
    struct parameters p = {.rank = MAP_RANK, .address = (uint64_t)1 << 46, .box = {UNIT, 1, 1, 1, 1}};
    for (int i = 0; i < MAP_RANK; i++) {
        p.sizes[i] = 1;
        p.steps[i] = 1;
        if (i + 1 < MAP_RANK)
            p.strides[i] = (uint64_t)1 << (STRIDE_BITS - 1);
    }
    return p;
}

static int compare(enum map_count kind, int dimension, uint64_t first, uint64_t second, int found[2])
{
    struct parameters p[2] = {smallest(), smallest()};
    for (int i = 0; i < 2; i++) {
        const uint64_t value = i ? second : first;
        if (kind == MAP_SIZES)
            p[i].sizes[dimension] = value;
        else
            (kind == MAP_BOXES ? p[i].box : p[i].steps)[dimension] = (uint32_t)value;
    }
    return differ(p[0], p[1], found);
}

/* A parameter that counts from 1, in consecutive bits, as it is or less 1. The first bits, of the unit and above, tell
 * the others; a few of these are compared. */
bool map_bits_find_count(enum map_count kind, int dimension, int unit_bits, int width, struct map_field *field)
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

bool map_bits_find_stride(int dimension, struct map_field *field)
{
    *field = no_bits();
    for (int k = MAP_UNIT_BITS; k < STRIDE_BITS; k++) {
        struct parameters a = smallest(), b;
        a.rank = (uint32_t)dimension + 2; /* strides shall be multiples of those before */
        for (int i = 0; i < dimension; i++)
            a.strides[i] = UNIT;
        a.strides[dimension] = k == MAP_UNIT_BITS ? 2 * UNIT : UNIT;
        b = a;
        b.strides[dimension] += (uint64_t)1 << k;
        field->bits[k] = only_difference(&a, &b);
        if (field->bits[k] < 0 && k < CERTAIN_BITS)
            return false;
    }
    return true;
}

bool map_bits_find_address(struct map_field *field)
{
    *field = no_bits();
    for (int k = MAP_UNIT_BITS; k < ADDRESS_BITS; k++) {
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
static int type_bits(int found[MAP_TYPE_BITS])
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
    return positions(&both, found, MAP_TYPE_BITS);
}

/* The bits of the type, and TABLE: LOG_BYTES by their value. */
bool map_bits_find_types(struct map_field *field, char table[(1 << MAP_TYPE_BITS) + 1])
{
    int found[MAP_TYPE_BITS];
    const int n = type_bits(found);
    if (n < 1 || n > MAP_TYPE_BITS)
        return false;
    *field = no_bits();
    for (int k = 0; k < n; k++)
        field->bits[k] = found[k];
    memset(table, '-', 1 << MAP_TYPE_BITS);
    table[1 << MAP_TYPE_BITS] = '\0';
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

bool map_bits_can_encode(void)
{
    const struct parameters any = smallest();
    struct bits map;
    return encode(&any, &map);
}
