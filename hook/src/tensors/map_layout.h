/* Layout of the parameters of a tensor map in its 128 opaque bytes, found by encoding maps that differ in one
 * bit of one parameter. Probes read the box of a copy out of the map that the copy names, also of one that a kernel made. */
#ifndef TUI_PROBE_MAP_LAYOUT_H
#define TUI_PROBE_MAP_LAYOUT_H

enum { MAP_LAYOUT_SIZE = 1024 };

/* "d0:1:256.0.32/...": for each parameter the number to add and its runs, BIT of the map, BIT of the value and WIDTH.
 * d, b, e and s are sizes, box sizes, element strides and strides by dimension, a is the address, t the type, whose
 * numbers T gives the binary logarithm of bytes for. "" if the driver encodes no maps, or in a form that is not this one;
 * then probes count copies by tensor map without their sizes. */
const char *map_layout(void);

/* In a forked child. */
void map_layout_reset(void);

#endif
