#include "device.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "map_layout.h"
#include "real.h"

enum { FIRST_WITH_TENSOR_MAPS = 90 };

static atomic_uint_fast64_t described; /* one bit per device */

static bool attribute(int which, CUdevice device, int *value)
{
    return REAL_OR_NOT_FOUND(cuDeviceGetAttribute, value, which, device) == CUDA_SUCCESS;
}

bool device_describe(char *line, size_t size)
{
    CUdevice device;
    if (REAL_OR_NOT_FOUND(cuCtxGetDevice, &device) != CUDA_SUCCESS || device < 0)
        return false;
    uint64_t bit = (uint64_t)1 << (device % 64);
    if (atomic_fetch_or(&described, bit) & bit)
        return false;
    char name[256] = "-";
    int multiprocessors = 0, clock = 0, major = 0, minor = 0;
    REAL_OR_NOT_FOUND(cuDeviceGetName, name, sizeof name, device);
    attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device, &multiprocessors);
    attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device, &clock);
    attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device, &major);
    attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device, &minor);
    snprintf(line, size, "[init] device %d sms %d clock %d cc %d.%d name %s\n", device, multiprocessors, clock, major,
             minor, name);
    return true;
}

bool device_architecture(CUdevice device, char *name, size_t size)
{
    int major, minor;
    if (!attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device, &major) ||
        !attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device, &minor))
        return false;
    snprintf(name, size, "sm_%d%d", major, minor);
    return true;
}

bool device_target(CUdevice device, char target[DEVICE_TARGET_SIZE])
{
    char name[16];
    if (!device_architecture(device, name, sizeof name))
        return false;
    const char *layout = device_capability(device) >= FIRST_WITH_TENSOR_MAPS ? map_layout() : "";
    snprintf(target, DEVICE_TARGET_SIZE, "%s%s%s", name, layout[0] ? "+" : "", layout);
    return true;
}

unsigned device_capability(CUdevice device)
{
    int major, minor;
    if (!attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device, &major) ||
        !attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device, &minor))
        return 0;
    return (unsigned)(10 * major + minor);
}

void device_reset(void)
{
    atomic_store(&described, 0);
    map_layout_reset();
}
