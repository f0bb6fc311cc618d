// What the host pays to enqueue one launch of a small kernel.
// usage: launch_cost KERNELS LAUNCHES ROUNDS OUTPUT   -> one line per round: nanoseconds per launch
#include "driver.h"

int main(int count, char **arguments) {
    if (count != 5) return 2;
    make_context();
    CUfunction zero_fill = function(load(arguments[1]), "zero_fill");
    int launches = atoi(arguments[2]), rounds = atoi(arguments[3]), n = 32;
    CUdeviceptr out = allocate(4096);
    void *params[] = {&out, &n};
    FILE *output = fopen(arguments[4], "w");
    if (!output) return 2;
    double first = now_seconds();
    CHECK(launch(zero_fill, 1, 32, 0, params, NULL));
    fprintf(output, "first %.0f\n", (now_seconds() - first) * 1e9);
    for (int i = 0; i < 200; i++) CHECK(launch(zero_fill, 1, 32, 0, params, NULL));
    synchronize();
    for (int round = 0; round < rounds; round++) {
        double start = now_seconds();
        for (int i = 0; i < launches; i++) launch(zero_fill, 1, 32, 0, params, NULL);
        fprintf(output, "round %.1f\n", (now_seconds() - start) * 1e9 / launches);
        synchronize();
    }
    fclose(output);
    return 0;
}
