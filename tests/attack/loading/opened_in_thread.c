/* A second thread opens the driver and launches; the first thread leaves with pthread_exit. Ends with the second one. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static void *driver;

#define CALL(name, parameters, arguments) ((int(*) parameters)(uintptr_t)dlsym(driver, #name)) arguments

static void *launch_one(void *unused)
{
    void *context, *module, *function;
    (void)unused;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    const int failed =
        CALL(cuInit, (unsigned), (0)) || CALL(cuCtxCreate_v2, (void **, unsigned, int), (&context, 0, 0)) ||
        CALL(cuModuleLoadData, (void **, const void *), (&module, ".version 8.0\n")) ||
        CALL(cuModuleGetFunction, (void **, void *, const char *), (&function, module, "again")) ||
        CALL(cuLaunchKernel,
             (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
             (function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    puts(failed ? "failed" : "launched");
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, launch_one, NULL);
    pthread_exit(NULL);
}
