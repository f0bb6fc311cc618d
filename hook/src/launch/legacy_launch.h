/* Settings of functions for launches as before CUDA 4: a shape, then parameters, then cuLaunchGrid. The
 * driver does not tell it, so it is noted as it is set. */
#ifndef TUI_PROBE_LEGACY_LAUNCH_H
#define TUI_PROBE_LEGACY_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"

enum { LEGACY_PARAMETER_BYTES = 4096 };

struct legacy_launch {
    uint32_t block[3], shared;
    size_t size; /* bytes of parameters */
    unsigned char values[LEGACY_PARAMETER_BYTES];
};

/* Each notes what the driver has accepted. */
void legacy_launch_note_block(CUfunction function, int x, int y, int z);
void legacy_launch_note_shared(CUfunction function, unsigned int bytes);
void legacy_launch_note_size(CUfunction function, unsigned int bytes);
void legacy_launch_note_values(CUfunction function, int offset, const void *values, unsigned int bytes);

/* A copy of what is known, for free(). NULL where that is not enough for a launch. */
struct legacy_launch *legacy_launch_get(CUfunction function);

/* Forgets that another thread may be at work, in a forked child. */
void legacy_launch_reset(void);

#endif
