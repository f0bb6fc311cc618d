/* A library that loads the driver into variables with the names of its functions. */
#include <dlfcn.h>

int (*cuInit)(unsigned flags);
int (*cuDeviceGetCount)(int *count);

int device_count(void)
{
    int count = -1;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&cuInit = dlsym(driver, "cuInit");
    *(void **)&cuDeviceGetCount = dlsym(driver, "cuDeviceGetCount");
    return cuInit(0) || cuDeviceGetCount(&count) ? -1 : count;
}
