/* Opens the driver late and launches. With "thread": in a second thread, after the first one left with pthread_exit.
 * With "cleared": after the environment was cleared. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int main(int count, char **arguments)
{
    pthread_t thread;
    if (count > 1 && strcmp(arguments[1], "cleared") == 0) {
        clearenv();
        launch_one(NULL);
        return 0;
    }
    pthread_create(&thread, NULL, launch_one, NULL);
    pthread_exit(NULL);
}
