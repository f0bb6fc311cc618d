// Zero fills of 32 768 blocks of 128 threads, timed by events, beside fills of one block an SM and an empty kernel.
// What is timed is queued behind a spinning kernel, so that the events see the GPU and not the host's launches.
// usage: zero_fill KERNELS OUTPUT   -> lines "zero_fill MS", "one_block_an_sm MS", "nothing MS", "cycles_per_ns C"
#include "driver.h"

enum { ROUNDS = 7, BLOCKS = 32768, THREADS = 128 };

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
    int n = BLOCKS * THREADS, sms;
    CHECK(DRIVER(cuDeviceGetAttribute, int *, int, CUdevice)(&sms, 16, 0));
    CUdeviceptr out = allocate((size_t)n * 4);
    rate = allocate(16);
    void *params[] = {&out, &n};
    CHECK(DRIVER(cuEventCreate, CUevent *, unsigned)(&start, 0));
    CHECK(DRIVER(cuEventCreate, CUevent *, unsigned)(&stop, 0));
    FILE *output = fopen(arguments[2], "w");
    if (!output) return 2;
    for (int round = 0; round < ROUNDS; round++) {
        fprintf(output, "zero_fill %.6f\n", timed(zero_fill, BLOCKS, params));
        fprintf(output, "one_block_an_sm %.6f\n", timed(zero_fill, (unsigned)sms, params));
        fprintf(output, "nothing %.6f\n", timed(nothing, 1, NULL));
    }
    spin();
    unsigned long long ticks[2];
    to_host(ticks, rate, sizeof ticks);
    fprintf(output, "cycles_per_ns %.6f\n", (double)ticks[0] / ticks[1]);
    fclose(output);
    return 0;
}
