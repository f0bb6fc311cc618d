/* Launches from four threads; once all are at work, a library that it loads calls exit(). */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuCtxSetCurrent(void *context);
int cuModuleLoadData(void **module, const void *image);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra);

enum { THREADS = 4, WARM_UP = 50 };

static void *context, *function;
static atomic_int warm;

static void *launch_forever(void *unused)
{
    (void)unused;
    cuCtxSetCurrent(context);
    for (int i = 0;; i++) {
        if (cuLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL) != 0)
            return NULL;
        if (i == WARM_UP)
            atomic_fetch_add(&warm, 1);
    }
}

int main(int argc, char **argv)
{
    void *module;
    pthread_t threads[THREADS];
    if (argc != 2 || cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuModuleLoadData(&module, ".version 8.0\n") ||
        cuModuleGetFunction(&function, module, "spin"))
        return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, launch_forever, NULL);
    while (atomic_load(&warm) < THREADS)
        ;
    void *library = dlopen(argv[1], RTLD_NOW);
    void (*leave)(int) = library ? (void (*)(int))(uintptr_t)dlsym(library, "leave") : NULL;
    if (!leave)
        return 2;
    leave(11);
}
