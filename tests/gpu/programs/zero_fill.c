// Zero fills of several sizes, in blocks of 128 threads, and an empty kernel, timed by events; and the SM clock.
// What is timed is queued behind a spinning kernel, so that the events see the GPU and not the host's launches.
// usage: zero_fill KERNELS OUTPUT   -> lines "BLOCKS MS" (0 blocks: the empty kernel) and "cycles_per_us C"
#include "driver.h"

enum { ROUNDS = 7, THREADS = 128 };

static const unsigned sizes[] = {8192, 32768, 131072, 524288};

static CUevent start, stop;
static CUfunction clock_rate;
static CUdeviceptr rate;

static void spin(void) {
    void *params[] = {&rate};
    CHECK(launch(clock_rate, 1, 1, 0, params, NULL));
}

static float timed(CUfunction kernel, unsigned blocks, void **params) {
    float milliseconds;
    spin();
    CHECK(DRIVER(cuEventRecord, CUevent, CUstream)(start, 0));
    CHECK(launch(kernel, blocks, THREADS, 0, params, NULL));
    CHECK(DRIVER(cuEventRecord, CUevent, CUstream)(stop, 0));
    synchronize();
    CHECK(DRIVER(cuEventElapsedTime, float *, CUevent, CUevent)(&milliseconds, start, stop));
    return milliseconds;
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    make_context();
    CUmodule module = load(arguments[1]);
    CUfunction zero_fill = function(module, "zero_fill"), nothing = function(module, "nothing");
    clock_rate = function(module, "clock_rate");
    int n = 524288 * THREADS;
    CUdeviceptr out = allocate((size_t)n * 4);
    rate = allocate(16);
    void *params[] = {&out, &n};
    CHECK(DRIVER(cuEventCreate, CUevent *, unsigned)(&start, 0));
    CHECK(DRIVER(cuEventCreate, CUevent *, unsigned)(&stop, 0));
    FILE *output = fopen(arguments[2], "w");
    if (!output) return 2;
    for (int round = 0; round < ROUNDS; round++) {
        fprintf(output, "0 %.6f\n", timed(nothing, 1, NULL));
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            fprintf(output, "%u %.6f\n", sizes[i], timed(zero_fill, sizes[i], params));
    }
    spin();
    unsigned long long ticks[2];
    to_host(ticks, rate, sizeof ticks);
    fprintf(output, "cycles_per_us %.3f\n", 1e3 * ticks[0] / ticks[1]);
    fclose(output);
    return 0;
}
