/* The device of the current context. */
#ifndef TUI_PROBE_DEVICE_H
#define TUI_PROBE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "cuda_abi.h"

enum { DEVICE_LINE_SIZE = 384, DEVICE_TARGET_SIZE = 1040 };

/* The log's line on the current context's device. False without one, or if it was given before. */
bool device_describe(char *line, size_t size);

/* "sm_90"; false if the driver does not say. */
bool device_architecture(CUdevice device, char *name, size_t size);

/* The same for the engine: followed by "+" and the layout of tensor maps if the device has them. */
bool device_target(CUdevice device, char target[DEVICE_TARGET_SIZE]);

/* Its compute capability, 90 for 9.0; 0 if the driver does not say. */
unsigned device_capability(CUdevice device);

void device_reset(void);

#endif
