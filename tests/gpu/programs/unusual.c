// What programs do with a GPU that few programs do, and what must be as without the profiler all the same.
//
// usage: unusual KERNELS reset|unload|stray|full|steady [TURNS]
//   reset   resets the device between two of three rounds
//   unload  unloads modules whose kernels are still to run
//   stray   a kernel writes where no memory is, and the program continues as long as it can; ends with 3
//   full    takes all memory of the device first
//   steady  launches for some seconds, for two programs next to each other
// TURNS of the loop in each thread tell how long a kernel takes.
#include "driver.h"
#include <stdbool.h>
#include <unistd.h>

enum { BLOCKS = 64, THREADS = 128, WORDS = BLOCKS * THREADS, CHUNKS = 4096 };

static unsigned turns = 20000;

static void fill(CUfunction kernel, CUdeviceptr memory, unsigned first, CUstream stream)
{
    void *parameters[] = {&memory, &first, &turns};
    CHECK(launch(kernel, BLOCKS, THREADS, stream, parameters, NULL));
}

static unsigned long long sum_of(CUdeviceptr memory)
{
    static unsigned copy[WORDS];
    unsigned long long sum = 0;
    to_host(copy, memory, sizeof copy);
    for (int i = 0; i < WORDS; i++)
        sum += copy[i];
    return sum;
}

static int reset(const char *kernels)
{
    for (unsigned round = 0; round < 3; round++) {
        make_context();
        CUfunction kernel = function(load(kernels), "fill");
        CUdeviceptr memory = allocate(WORDS * sizeof(unsigned));
        for (unsigned i = 0; i < 4; i++)
            fill(kernel, memory, round + i, NULL);
        printf("round %u: %llu\n", round, sum_of(memory));
        if (round < 2)
            CHECK(DRIVER(cuDevicePrimaryCtxReset_v2, CUdevice)(0));
    }
    return 0;
}

static int unload(const char *kernels)
{
    make_context();
    CUstream stream;
    CUdeviceptr memory = allocate(WORDS * sizeof(unsigned));
    CHECK(DRIVER(cuStreamCreate, CUstream *, unsigned)(&stream, 1));
    for (unsigned round = 0; round < 20; round++) {
        CUmodule module = load(kernels);
        CUfunction kernel = function(module, "fill");
        for (unsigned i = 0; i < 3; i++)
            fill(kernel, memory, round + i, stream);
        CHECK(DRIVER(cuModuleUnload, CUmodule)(module));
        CHECK(DRIVER(cuStreamSynchronize, CUstream)(stream));
        printf("round %u: %llu\n", round, sum_of(memory));
    }
    return 0;
}

static int stray(const char *kernels)
{
    make_context();
    CUmodule module = load(kernels);
    CUfunction kernel = function(module, "stray");
    CUdeviceptr memory = allocate(WORDS * sizeof(unsigned)), nowhere = 16;
    fill(function(module, "fill"), memory, 1, NULL);
    printf("before: %llu\n", sum_of(memory));
    void *parameters[] = {&nowhere};
    int launched = launch(kernel, 1, 1, NULL, parameters, NULL);
    int waited = DRIVER(cuCtxSynchronize, void)(), again = launch(kernel, 1, 1, NULL, parameters, NULL);
    printf("launched %d, waited %d, launched again %d, memory %d\n", launched, waited, again,
           DRIVER(cuMemAlloc_v2, CUdeviceptr *, size_t)(&memory, 4096));
    return 3;
}

static int full(const char *kernels)
{
    make_context();
    CUdeviceptr memory = allocate(WORDS * sizeof(unsigned)), chunk;
    CUfunction kernel = function(load(kernels), "fill");
    int n = 0;
    for (size_t size = (size_t)4 << 30; size >= 4096; size /= 2)
        while (n < CHUNKS && DRIVER(cuMemAlloc_v2, CUdeviceptr *, size_t)(&chunk, size) == 0)
            n++;
    for (unsigned i = 0; i < 50; i++) {
        fill(kernel, memory, i, NULL);
        if (i % 10 == 0)
            printf("launch %u: %llu\n", i, sum_of(memory));
    }
    return 0;
}

static int steady(const char *kernels)
{
    make_context();
    CUfunction kernel = function(load(kernels), "fill");
    CUdeviceptr memory = allocate(WORDS * sizeof(unsigned));
    unsigned long long sum = 0;
    for (unsigned i = 0; i < 200; i++) {
        fill(kernel, memory, i, NULL);
        sum += sum_of(memory);
        usleep(5000);
    }
    printf("%llu\n", sum);
    return 0;
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        int (*run)(const char *kernels);
    } ways[] = {{"reset", reset}, {"unload", unload}, {"stray", stray}, {"full", full}, {"steady", steady}};
    turns = count == 4 ? (unsigned)atoi(arguments[3]) : turns;
    for (size_t i = 0; count >= 3 && i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, arguments[2]) == 0)
            return ways[i].run(arguments[1]);
    return 2;
}
