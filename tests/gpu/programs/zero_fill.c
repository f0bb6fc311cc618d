// One zero fill of 32 768 blocks of 128 threads, timed by events, with the SM clock measured beside it.
// usage: zero_fill KERNELS OUTPUT   -> "milliseconds M" and "cycles_per_ns C"
#include "driver.h"

int main(int count, char **arguments) {
    if (count != 3) return 2;
    make_context();
    CUmodule module = load(arguments[1]);
    CUfunction zero_fill = function(module, "zero_fill"), clock_rate = function(module, "clock_rate");
    int n = 32768 * 128;
    CUdeviceptr out = allocate((size_t)n * 4), rate = allocate(16);
    void *params[] = {&out, &n}, *rate_params[] = {&rate};
    CUevent start, stop;
    CHECK(DRIVER(cuEventCreate, CUevent *, unsigned)(&start, 0));
    CHECK(DRIVER(cuEventCreate, CUevent *, unsigned)(&stop, 0));
    CHECK(launch(clock_rate, 1, 1, 0, rate_params, NULL));
    CHECK(launch(zero_fill, 32768, 128, 0, params, NULL));
    synchronize();
    CHECK(DRIVER(cuEventRecord, CUevent, CUstream)(start, 0));
    CHECK(launch(zero_fill, 32768, 128, 0, params, NULL));
    CHECK(DRIVER(cuEventRecord, CUevent, CUstream)(stop, 0));
    CHECK(launch(clock_rate, 1, 1, 0, rate_params, NULL));
    synchronize();
    float milliseconds;
    unsigned long long ticks[2];
    CHECK(DRIVER(cuEventElapsedTime, float *, CUevent, CUevent)(&milliseconds, start, stop));
    to_host(ticks, rate, sizeof ticks);
    FILE *output = fopen(arguments[2], "w");
    if (!output) return 2;
    fprintf(output, "milliseconds %.6f\ncycles_per_ns %.6f\n", milliseconds, (double)ticks[0] / ticks[1]);
    fclose(output);
    return 0;
}
