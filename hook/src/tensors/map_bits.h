/* Bits of a tensor map in which the driver encodes a parameter. They are found by encoding maps that differ in one bit
 * of that parameter, since NVIDIA does not document the 128 bytes. */
#ifndef TUI_PROBE_MAP_BITS_H
#define TUI_PROBE_MAP_BITS_H

#include <stdbool.h>

enum {
    MAP_RANK = 5,        /* dimensions */
    MAP_VALUE_BITS = 64, /* of a parameter */
    MAP_TYPE_BITS = 5,   /* of the map that may encode the type of the elements */
    MAP_UNIT_BITS = 4    /* addresses, strides and boxes of bytes are multiples of 16 bytes */
};

/* Of each bit of a value its bit in the map, -1 for none. The map has the value less BIAS. */
struct map_field {
    int bits[MAP_VALUE_BITS];
    int bias;
};

/* Parameters that count from 1, of each dimension: sizes, sizes of the box, element strides. */
enum map_count { MAP_SIZES, MAP_BOXES, MAP_STEPS };

/* False if the driver encodes no map at all: there may be no context yet. */
bool map_bits_can_encode(void);

/* Each returns false if the bits are not those of one value in a row. */
bool map_bits_find_count(enum map_count kind, int dimension, int unit_bits, int width, struct map_field *field);
bool map_bits_find_stride(int dimension, struct map_field *field);
bool map_bits_find_address(struct map_field *field);

/* The bits of the type of the elements. TABLE receives the binary logarithm of their bytes, as a digit, by the value of
 * these bits; - for a value of no type. */
bool map_bits_find_types(struct map_field *field, char table[(1 << MAP_TYPE_BITS) + 1]);

#endif
