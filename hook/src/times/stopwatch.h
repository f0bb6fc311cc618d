/* Times of single launches, in milliseconds on the device. The second-level cache is flushed before each,
 * so that all of them begin alike. */
#ifndef TUI_PROBE_STOPWATCH_H
#define TUI_PROBE_STOPWATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "launch.h"

/* Times one launch of FUNCTION with PARAMETERS (NULL: as passed). *MILLISECONDS is negative if it could not be
 * timed. The result is that of the launch, or of waiting for it. */
CUresult stopwatch_launch(const struct launch *launch, CUfunction function, void **parameters, float *milliseconds);

/* Times clearing SIZE bytes at MEMORY, and copying them to the host; negative if not measured. */
float stopwatch_clear(CUdeviceptr memory, size_t size, CUstream stream);
float stopwatch_copy_back(CUdeviceptr memory, size_t size, CUstream stream);

/* Bytes that a flush writes in the current context: 0 if the driver does not say how large the cache is. */
size_t stopwatch_flush_size(void);

#endif
