/* Registers, memory and occupancy of a kernel, as the driver has them. */
#ifndef TUI_PROBE_FIGURES_H
#define TUI_PROBE_FIGURES_H

#include "launch.h"

enum { FIGURES_SIZE = 128 };

/* "registers R local L shared S blocks B" for a launch's block size, "-" for what the driver does not say. */
void figures_of(CUfunction function, const struct launch *launch, char text[FIGURES_SIZE]);

#endif
