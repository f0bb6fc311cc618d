// A driver-API program: every way of loading and launching, results printed and checked.
// usage: driver_api FOLDER   (with kernels.ptx, kernels.cubin, kernels.fatbin in it)
#include "driver.h"

enum { N = 1 << 16 };

static float host[N];

static void run_saxpy(CUfunction saxpy, const char *label, int use_extra) {
    CUdeviceptr x = allocate(sizeof host), y = allocate(sizeof host);
    for (int i = 0; i < N; i++) host[i] = (float)i;
    to_device(x, host, sizeof host);
    to_device(y, host, sizeof host);
    float a = 2.0f;
    int n = N;
    struct { CUdeviceptr y, x; float a; int n; } packed = {y, x, a, n};
    size_t size = sizeof packed;
    void *params[] = {&y, &x, &a, &n};
    void *extra[] = {(void *)1, &packed, (void *)2, &size, (void *)0};
    CHECK(use_extra ? launch(saxpy, N / 256, 256, 0, NULL, extra) : launch(saxpy, N / 256, 256, 0, params, NULL));
    to_host(host, y, sizeof host);
    double sum = 0;
    for (int i = 0; i < N; i++) sum += host[i];
    printf("saxpy %s %.1f\n", label, sum);
    CHECK(DRIVER(cuMemFree_v2, CUdeviceptr)(x));
    CHECK(DRIVER(cuMemFree_v2, CUdeviceptr)(y));
}

static void run_visits(CUmodule module) {
    CUdeviceptr out = allocate(512 * 4), variable;
    size_t size;
    float constants[4] = {1, 2, 3, 4}, values[512];
    CHECK(DRIVER(cuModuleGetGlobal_v2, CUdeviceptr *, size_t *, CUmodule, const char *)(&variable, &size, module, "scale"));
    to_device(variable, constants, sizeof constants);
    void *params[] = {&out};
    for (int i = 0; i < 3; i++) CHECK(launch(function(module, "count_visits"), 2, 256, 0, params, NULL));
    unsigned visits;
    CHECK(DRIVER(cuModuleGetGlobal_v2, CUdeviceptr *, size_t *, CUmodule, const char *)(&variable, &size, module, "visits"));
    to_host(&visits, variable, 4);
    to_host(values, out, sizeof values);
    double sum = 0;
    for (int i = 0; i < 512; i++) sum += values[i];
    printf("visits %u sum %.1f\n", visits, sum);
}

static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) exit(2);
    char *text = calloc(1, 1 << 22);
    text[0] = '\n';
    text[1] = ' ';
    if (!fread(text + 2, 1, (1 << 22) - 3, file)) exit(2);
    fclose(file);
    return text;
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    char path[4096];
    make_context();
    const char *forms[] = {"ptx", "cubin", "fatbin"};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/kernels.%s", arguments[1], forms[i]);
        CUmodule module = load(path);
        run_saxpy(function(module, "saxpy"), forms[i], i == 1);
        if (i != 1) run_visits(module);
        CHECK(launch(function(module, "nothing"), 3, 48, 0, NULL, NULL));
        CHECK(DRIVER(cuModuleUnload, CUmodule)(module));
    }
    snprintf(path, sizeof path, "%s/kernels.ptx", arguments[1]);
    char *text = read_file(path);
    CUlibrary library;
    CUkernel kernel;
    CHECK(DRIVER(cuLibraryLoadData, CUlibrary *, const void *, void *, void **, unsigned, void *, void **, unsigned)(
        &library, text, NULL, NULL, 0, NULL, NULL, 0));
    CHECK(DRIVER(cuLibraryGetKernel, CUkernel *, CUlibrary, const char *)(&kernel, library, "saxpy"));
    run_saxpy((CUfunction)kernel, "library", 0);
    synchronize();
    return 7;  // an exit status of its own: the profiler must pass it on
}
