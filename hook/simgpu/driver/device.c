/* The one device and what it says of itself. */

#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "machine.h"

static const char NAME[] = "Simulated GPU";
static const char BUS_ID[] = "0000:00:00.0";
static const CUuuid UUID = {"tui-probe-sim-0"};

struct attribute {
    int number;
    int value;
};

/* CU_DEVICE_ATTRIBUTE_…; what is not here is 0: a feature that is not there. */
static const struct attribute attributes[] = {
    {1, BLOCK_MAX_THREADS},
    {2, BLOCK_MAX_X},
    {3, BLOCK_MAX_Y},
    {4, BLOCK_MAX_Z},
    {5, GRID_MAX_X},
    {6, GRID_MAX_YZ},
    {7, GRID_MAX_YZ},
    {8, BLOCK_SHARED_BYTES},
    {9, CONSTANT_BYTES},
    {10, WARP_LANES},
    {11, 2147483647}, /* largest pitch */
    {12, SM_REGISTERS},
    {13, CLOCK_KHZ},
    {14, 512}, /* texture alignment */
    {15, 1},   /* copies may overlap kernels */
    {18, 0},   /* integrated */
    {19, 1},   /* maps host memory */
    {30, 512}, /* surface alignment */
    {36, CLOCK_KHZ},
    {37, 256}, /* memory bus width, bits */
    {38, L2_CACHE_BYTES},
    {39, SM_MAX_THREADS},
    {40, 1}, /* copy engines */
    {41, 1}, /* unified addressing */
    {51, 32},
    {79, 1}, /* global loads cached in L1 */
    {80, 1}, /* local loads cached in L1 */
    {82, SM_REGISTERS},
    {83, 1}, /* managed memory */
    {87, 2}, /* single to double precision */
    {89, 1}, /* managed memory may be used by both at the same time */
    {95, 1}, /* cooperative launch */
    {99, 1}, /* host memory can be registered */
    {101, 1},
    {102, 1}, /* virtual memory management */
    {106, SM_MAX_BLOCKS},
};

enum {
    ATTRIBUTE_SM_COUNT = 16,
    ATTRIBUTE_MAJOR = 75,
    ATTRIBUTE_MINOR = 76,
    ATTRIBUTE_SM_SHARED_BYTES = 81,
    ATTRIBUTE_BLOCK_SHARED_BYTES = 97,
    ATTRIBUTE_CLUSTERS = 120,
    ATTRIBUTE_COUNT = 148
};

/* Checks a device number. Locks the driver unless it fails. */
static CUresult enter_device(CUdevice device, const void *answer)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    if (!answer)
        return leave(CUDA_ERROR_INVALID_VALUE);
    return device == 0 ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_DEVICE);
}

API cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult result = enter_device(ordinal, device);
    if (result)
        return result;
    *device = 0;
    return leave(CUDA_SUCCESS);
}

API cuDeviceGetCount(int *count)
{
    CUresult result = enter_device(0, count);
    if (result)
        return result;
    *count = 1;
    return leave(CUDA_SUCCESS);
}

static CUresult give_text(char *answer, int size, CUdevice device, const char *text)
{
    CUresult result = enter_device(device, answer);
    if (result)
        return result;
    if (size <= 0)
        return leave(CUDA_ERROR_INVALID_VALUE);
    snprintf(answer, (size_t)size, "%s", text);
    return leave(CUDA_SUCCESS);
}

API cuDeviceGetName(char *name, int size, CUdevice device)
{
    return give_text(name, size, device, NAME);
}
API cuDeviceGetPCIBusId(char *id, int size, CUdevice device)
{
    return give_text(id, size, device, BUS_ID);
}

API cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
    CUresult result = enter_device(0, device);
    if (result)
        return result;
    if (!id)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (strcmp(id, BUS_ID) != 0 && strcmp(id, BUS_ID + strlen("0000:")) != 0)
        return leave(CUDA_ERROR_INVALID_DEVICE);
    *device = 0;
    return leave(CUDA_SUCCESS);
}

API cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    CUresult result = enter_device(device, uuid);
    if (result)
        return result;
    *uuid = UUID;
    return leave(CUDA_SUCCESS);
}
SAME_AS(cuDeviceGetUuid, cuDeviceGetUuid_v2);

API cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    CUresult result = enter_device(device, bytes);
    if (result)
        return result;
    *bytes = driver.memory_bytes;
    return leave(CUDA_SUCCESS);
}

API cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    CUresult result = enter_device(device, major);
    if (result)
        return result;
    if (!minor)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *major = driver.generation->major;
    *minor = driver.generation->minor;
    return leave(CUDA_SUCCESS);
}

static int attribute_value(int number)
{
    const struct generation *generation = driver.generation;
    switch (number) {
    case ATTRIBUTE_SM_COUNT:
        return (int)driver.sm_count;
    case ATTRIBUTE_MAJOR:
        return generation->major;
    case ATTRIBUTE_MINOR:
        return generation->minor;
    case ATTRIBUTE_SM_SHARED_BYTES:
        return generation->sm_shared_bytes;
    case ATTRIBUTE_BLOCK_SHARED_BYTES:
        return generation->block_shared_bytes;
    case ATTRIBUTE_CLUSTERS:
        return generation->has_clusters;
    }
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        if (attributes[i].number == number)
            return attributes[i].value;
    }
    return 0;
}

API cuDeviceGetAttribute(int *value, int number, CUdevice device)
{
    CUresult result = enter_device(device, value);
    if (result)
        return result;
    if (number < 1 || number >= ATTRIBUTE_COUNT)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *value = attribute_value(number);
    return leave(CUDA_SUCCESS);
}

API cuDeviceCanAccessPeer(int *able, CUdevice device, CUdevice peer)
{
    CUresult result = enter_device(device, able);
    if (result)
        return result;
    if (peer != 0)
        return leave(CUDA_ERROR_INVALID_DEVICE);
    *able = 0;
    return leave(CUDA_SUCCESS);
}
