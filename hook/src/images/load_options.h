/* The options that a program passes along with an image. */
#ifndef TUI_PROBE_LOAD_OPTIONS_H
#define TUI_PROBE_LOAD_OPTIONS_H

#include <stdint.h>

/* A hash of those that change the code the driver makes of an image; 0 without any. Before the driver is called, which
 * overwrites some values. */
uint64_t load_options_hash(unsigned int n, const int *options, void *const *values);

#endif
