/* The example that comes with tui-probe, in C: it starts in 2 ms of CPU, Python and NumPy in 200.
 *
 * examples FOLDER-OF-PTX [--kernel NAME]... [--size N] [--repeat N] [--slow]
 *
 * Each kernel gets whole numbers, so that results are exact, but for softmax, and has the shapes of demo.py. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COLUMNS 257
#define MOST 7 /* kernels */

typedef uint64_t address;

static void *driver;

#define CALL(name, types, ...)                                 \
    do {                                                       \
        int(*entry) types = (int(*) types)dlsym(driver, name); \
        check(name, entry(__VA_ARGS__));                       \
    } while (0)

static void check(const char *name, int status)
{
    const char *text = "unknown error";
    int (*error_name)(int, const char **) = (int (*)(int, const char **))dlsym(driver, "cuGetErrorName");

    if (!status)
        return;
    error_name(status, &text);
    fprintf(stderr, "%s: %s (%d)\n", name, text, status);
    exit(1);
}

struct options {
    const char *folder;
    const char *names[64];
    int count, size, repeat, slow;
};

/* A launch and what must come out: ``output``, at most two inputs, and scalars of four bytes. */
struct test_case {
    size_t count[3];
    void *host[3];
    void *expected;
    uint32_t scalars[2];
    int buffers, scalar_count;
    unsigned grid[2], block[2], shared;
    float tolerance;
};

static unsigned blocks(size_t count, unsigned block)
{
    return (unsigned)((count + block - 1) / block);
}

static void *numbers(size_t count, uint32_t seed)
{
    float *values = malloc(count * sizeof *values);

    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)((int)(seed >> 24) % 9 - 4);
    }
    return values;
}

static void buffer(struct test_case *test, size_t count, void *host)
{
    test->count[test->buffers] = count;
    test->host[test->buffers++] = host;
}

static void scalar(struct test_case *test, const void *value)
{
    memcpy(&test->scalars[test->scalar_count++], value, sizeof(uint32_t));
}

static void shape(struct test_case *test, unsigned grid, unsigned block)
{
    test->grid[0] = grid;
    test->block[0] = block;
    test->grid[1] = test->block[1] = 1;
}

static void stores(struct test_case *test, int size, size_t count, uint32_t first, size_t step)
{
    uint32_t *output = calloc(count, sizeof *output), *expected = calloc(count, sizeof *expected);

    for (size_t i = 0; i < count; i++)
        output[i] = first ? first + (uint32_t)i : 0;
    for (size_t i = 0; !first && i < count; i += step)
        expected[i] = (uint32_t)(i / step);
    buffer(test, count, output);
    scalar(test, &size);
    test->expected = expected;
    shape(test, blocks((size_t)size, first ? 128 : 256), first ? 128 : 256);
}

static void zero_fill(struct test_case *test, int size)
{
    stores(test, size, (size_t)size, 1, 1);
}

static void coalesced_store(struct test_case *test, int size)
{
    stores(test, size, (size_t)size, 0, 1);
}

static void strided_store(struct test_case *test, int size)
{
    stores(test, size, 2 * (size_t)size, 0, 2);
}

static void saxpy(struct test_case *test, int size)
{
    size_t count = (size_t)size;
    float factor = 2, *x = numbers(count, 1), *y = numbers(count, 2), *expected = malloc(count * sizeof *expected);

    for (size_t i = 0; i < count; i++)
        expected[i] = factor * x[i] + y[i];
    buffer(test, count, y);
    buffer(test, count, x);
    scalar(test, &factor);
    scalar(test, &size);
    test->expected = expected;
    shape(test, blocks(count, 256), 256);
}

static void matmul(struct test_case *test, int size)
{
    int side = (int)sqrt(size);
    size_t n = (size_t)side;
    float *a = numbers(n * n, 1), *b = numbers(n * n, 2), *expected = calloc(n * n, sizeof *expected);

    for (size_t row = 0; row < n; row++)
        for (size_t k = 0; k < n; k++)
            for (size_t column = 0; column < n; column++)
                expected[row * n + column] += a[row * n + k] * b[k * n + column];
    buffer(test, n * n, calloc(n * n, sizeof(float)));
    buffer(test, n * n, a);
    buffer(test, n * n, b);
    scalar(test, &side);
    test->expected = expected;
    test->grid[0] = test->grid[1] = blocks(n, 16);
    test->block[0] = test->block[1] = 16;
}

static void reduction(struct test_case *test, int size)
{
    size_t count = (size_t)size;
    float *values = numbers(count, 1), *total = calloc(1, sizeof *total);
    unsigned grid = blocks(count, 256);

    for (size_t i = 0; i < count; i++)
        *total += values[i];
    buffer(test, 1, calloc(1, sizeof(float)));
    buffer(test, count, values);
    scalar(test, &size);
    test->expected = total;
    shape(test, grid < 64 ? grid : 64, 256);
}

/* Rows whose length is not a multiple of the number of threads. */
static void softmax(struct test_case *test, int size)
{
    int columns = COLUMNS;
    size_t rows = blocks((size_t)size, COLUMNS), count = rows * COLUMNS;
    float *values = numbers(count, 1), *expected = malloc(count * sizeof *expected);

    for (size_t row = 0; row < rows; row++) {
        double sum = 0;
        for (int i = 0; i < COLUMNS; i++)
            sum += exp(values[row * COLUMNS + (size_t)i]);
        for (int i = 0; i < COLUMNS; i++)
            expected[row * COLUMNS + (size_t)i] = (float)(exp(values[row * COLUMNS + (size_t)i]) / sum);
    }
    buffer(test, count, calloc(count, sizeof(float)));
    buffer(test, count, values);
    scalar(test, &columns);
    test->expected = expected;
    test->shared = 4 * 128;
    test->tolerance = 1e-5f;
    shape(test, (unsigned)rows, 128);
}

static const struct {
    const char *name;
    void (*make)(struct test_case *, int);
} EXAMPLES[MOST] = {
    {"zero_fill", zero_fill},
    {"coalesced_store", coalesced_store},
    {"strided_store", strided_store},
    {"saxpy", saxpy},
    {"matmul", matmul},
    {"reduction", reduction},
    {"softmax", softmax},
};

/* The text of a PTX file; the source file next to it, which it names, is named with its folder. */
static char *read_ptx(const char *folder, const char *name)
{
    char path[4096], line[4096], *text = NULL;
    size_t size = 0;
    FILE *file, *expanded = open_memstream(&text, &size);

    snprintf(path, sizeof path, "%s/%s.ptx", folder, name);
    file = fopen(path, "r");
    if (!file) {
        perror(path);
        exit(1);
    }
    while (fgets(line, sizeof line, file)) {
        char *quote = line[strspn(line, " \t")] == '.' && strstr(line, ".file") ? strchr(line, '"') : NULL;
        if (quote && !strchr(quote, '/'))
            fprintf(expanded, "%.*s\"%s/%s", (int)(quote - line), line, folder, quote + 1);
        else
            fputs(line, expanded);
    }
    fclose(file);
    fclose(expanded);
    return text;
}

static int equals(const struct test_case *test, const void *result)
{
    const float *got = result, *expected = test->expected;

    if (!test->tolerance)
        return !memcmp(result, test->expected, 4 * test->count[0]);
    for (size_t i = 0; i < test->count[0]; i++)
        if (!(fabsf(got[i] - expected[i]) <= test->tolerance * expected[i]))
            return 0;
    return 1;
}

static int run_case(void *function, const struct test_case *test)
{
    address addresses[3];
    uint32_t scalars[2];
    void *parameters[5], *result = calloc(test->count[0], 4);
    int count = 0, is_right;

    for (int i = 0; i < test->buffers; i++) {
        CALL("cuMemAlloc_v2", (address *, size_t), &addresses[i], 4 * test->count[i]);
        CALL("cuMemcpyHtoD_v2", (address, const void *, size_t), addresses[i], test->host[i], 4 * test->count[i]);
        parameters[count++] = &addresses[i];
    }
    memcpy(scalars, test->scalars, sizeof scalars);
    for (int i = 0; i < test->scalar_count; i++)
        parameters[count++] = &scalars[i];
    CALL("cuLaunchKernel",
         (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
         function, test->grid[0], test->grid[1], 1, test->block[0], test->block[1], 1, test->shared, NULL, parameters,
         NULL);
    CALL("cuCtxSynchronize", (void));
    CALL("cuMemcpyDtoH_v2", (void *, address, size_t), result, addresses[0], 4 * test->count[0]);
    for (int i = 0; i < test->buffers; i++)
        CALL("cuMemFree_v2", (address), addresses[i]);
    is_right = equals(test, result);
    free(result);
    return is_right;
}

static int run_example(int number, const struct options *options)
{
    const char *name = EXAMPLES[number].name;
    char *ptx = read_ptx(options->folder, name);
    void *module, *function;
    struct test_case test = {0};
    int is_right = 1;

    CALL("cuModuleLoadData", (void **, const void *), &module, ptx);
    CALL("cuModuleGetFunction", (void **, void *, const char *), &function, module, name);
    EXAMPLES[number].make(&test, options->size);
    for (int i = 0; i < options->repeat; i++) {
        is_right &= run_case(function, &test);
        if (options->slow)
            usleep(250000);
    }
    printf("%s %s\n", name, is_right ? "ok" : "WRONG");
    fflush(stdout);
    return is_right;
}

static struct options read_options(int argc, char **argv)
{
    struct options options = {.folder = argv[1], .size = 1 << 14, .repeat = 1};

    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "--slow"))
            options.slow = 1;
        else if (!strcmp(argv[i], "--kernel"))
            options.names[options.count++] = argv[++i];
        else if (!strcmp(argv[i], "--size"))
            options.size = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--repeat"))
            options.repeat = atoi(argv[++i]);
        else
            exit(2);
    }
    for (int i = 0; !options.names[0] && i < MOST; i++)
        options.names[options.count++] = NULL;
    return options;
}

static int number_of(const struct options *options, int place)
{
    if (!options->names[place])
        return place;
    for (int i = 0; i < MOST; i++)
        if (!strcmp(EXAMPLES[i].name, options->names[place]))
            return i;
    exit(2);
}

int main(int argc, char **argv)
{
    struct options options = read_options(argc, argv);
    int device = 0, is_right = 1;
    void *context;

    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        fprintf(stderr, "no CUDA driver: %s\n", dlerror());
        return 1;
    }
    CALL("cuInit", (unsigned), 0);
    CALL("cuDevicePrimaryCtxRetain", (void **, int), &context, device);
    CALL("cuCtxSetCurrent", (void *), context);
    for (int i = 0; i < options.count; i++)
        is_right &= run_example(number_of(&options, i), &options);
    return !is_right;
}
