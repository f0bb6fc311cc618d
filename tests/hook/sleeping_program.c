/* Launches once and sleeps, in the driver if there is an argument; a signal must not make it say that it slept enough. */
#include <stdio.h>
#include <unistd.h>

int cuInit(unsigned flags);
int cuCtxSynchronize(void);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuModuleLoadData(void **module, const void *image);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra);

int main(int count, char **arguments)
{
    void *context, *module, *function;
    if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuModuleLoadData(&module, ".version 8.0\n") ||
        cuModuleGetFunction(&function, module, "once") ||
        cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL))
        return 1;
    puts("up");
    fflush(stdout);
    (void)arguments;
    if (count > 1)
        cuCtxSynchronize();
    sleep(60);
    puts("slept enough");
    return 0;
}
