/* The text of a saved launch: launch.info, a line for each fact. */
#ifndef TUI_PROBE_KEPT_DESCRIPTION_H
#define TUI_PROBE_KEPT_DESCRIPTION_H

#include <stdio.h>

#include "launch.h"
#include "reach.h"

/* The parameters of a launch as one buffer, for free(). */
struct packed_parameters {
    size_t size;
    unsigned char *bytes;
};

/* Returns why they are not known, or NULL. */
const struct reason *kept_parameters(const struct launch *launch, CUfunction function,
                                     struct packed_parameters *packed);

/* Writes the kernel, its shape, parameters and attributes. */
void kept_describe_launch(FILE *text, const struct launch *launch, const struct kernel *kernel, CUfunction function,
                          const struct packed_parameters *packed);

/* Writes the name and the size of a variable of the module, the next part of the saved memory. */
void kept_describe_variable(FILE *text, const char *name, size_t size);

/* Writes which memory was saved behind the variables, and which is not known. */
void kept_describe_memory(FILE *text, const struct reach *reach);

#endif
