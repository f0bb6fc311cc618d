/* "THREADS LAUNCHES KERNELS": each thread launches so often, kernels k0, k1, … alternately, all
 * threads at the same time. Says how many nanoseconds a launch of a thread took. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuCtxSetCurrent(void *context);
int cuModuleLoadData(void **module, const void *image);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra);

enum { MOST_THREADS = 64, MOST_KERNELS = 64 };

static void *context, *functions[MOST_KERNELS];
static int n_launches, n_kernels;

static void *launch_all(void *unused)
{
    if (cuCtxSetCurrent(context))
        exit(3);
    for (int i = 0; i < n_launches; i++)
        if (cuLaunchKernel(functions[i % n_kernels], 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL))
            exit(4);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[MOST_THREADS];
    char name[16];
    void *module;
    struct timespec start, end;
    if (argc != 4)
        return 2;
    int n_threads = atoi(argv[1]);
    n_launches = atoi(argv[2]);
    n_kernels = atoi(argv[3]);
    if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuModuleLoadData(&module, ".version 8.0\n"))
        return 1;
    for (int i = 0; i < n_kernels; i++) {
        snprintf(name, sizeof name, "k%d", i % MOST_KERNELS);
        if (cuModuleGetFunction(&functions[i], module, name))
            return 1;
        cuLaunchKernel(functions[i], 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
    }
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < n_threads; i++)
        pthread_create(&threads[i], NULL, launch_all, NULL);
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double ns = (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
    printf("%.1f\n", ns / n_launches);
    return 0;
}
