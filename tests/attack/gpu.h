/* The driver as the programs here need it: a context, kernels by their names, launches. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuCtxSetCurrent(void *context);
int cuModuleLoadData(void **module, const void *image);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra);

/* A function that every program includes and few use whole. */
#define MAY_BE_UNUSED __attribute__((unused))

MAY_BE_UNUSED static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void *context;

MAY_BE_UNUSED static void *kernel_named(const char *name)
{
    static void *module;
    void *function;
    if (!context)
        must(!cuInit(0) && !cuCtxCreate_v2(&context, 0, 0) && !cuModuleLoadData(&module, ".version 8.0\n"),
             "no module");
    must(!cuModuleGetFunction(&function, module, name), "no function");
    return function;
}

MAY_BE_UNUSED static void launch(void *kernel, int times)
{
    must(cuCtxSetCurrent(context) == 0, "no context"); /* the calling thread may be a new one */
    for (int i = 0; i < times; i++)
        must(cuLaunchKernel(kernel, 2, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL) == 0, "a launch failed");
}
