/* A library with functions named like the driver's, which count calls and pass them on to the driver. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

static int calls;

static void *driver_function(const char *name)
{
    static void *driver;
    if (!driver)
        driver = dlopen("libcuda.so.1", RTLD_NOW);
    calls++;
    return dlsym(driver, name);
}

#define PASS_ON(name, parameters, arguments)                                    \
    int name parameters                                                         \
    {                                                                           \
        return ((int(*) parameters)(uintptr_t)driver_function(#name))arguments; \
    }

PASS_ON(cuInit, (unsigned flags), (flags))
PASS_ON(cuCtxCreate_v2, (void **context, unsigned flags, int device), (context, flags, device))
PASS_ON(cuCtxSetCurrent, (void *context), (context))
PASS_ON(cuModuleLoadData, (void **module, const void *image), (module, image))
PASS_ON(cuModuleGetFunction, (void **function, void *module, const char *name), (function, module, name))
PASS_ON(cuLaunchKernel,
        (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
         void *stream, void **parameters, void **extra),
        (function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra))

__attribute__((destructor)) static void report(void)
{
    printf("%d calls passed on\n", calls);
}
