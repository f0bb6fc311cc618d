/* The driver's state, and the lock around it. */

#include "driver.h"

#include <pthread.h>

struct driver driver = {.memory_file = -1};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void driver_lock(void)
{
    pthread_mutex_lock(&lock);
}

void driver_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

CUresult enter_driver(void)
{
    if (driver.forked)
        return CUDA_ERROR_NOT_INITIALIZED;
    driver_lock();
    return driver.initialized ? CUDA_SUCCESS : leave(CUDA_ERROR_NOT_INITIALIZED);
}

CUresult leave(CUresult result)
{
    driver_unlock();
    return result;
}

bool driver_has_room(void)
{
    enum { BYTES = 1 << 18 };
    return heap_has_room(&driver.device_heap, BYTES);
}
