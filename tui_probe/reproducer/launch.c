/* Launches one kernel alone, with the memory it had in its program, and compares the memory afterwards.
 *
 * Build it with a C compiler and the driver, without CUDA headers: cc -O2 -o launch launch.c -ldl
 * launch.h describes the launch, before.bin has the memory before it, after.bin the memory after it in the program, if
 * it ended there. Exit status: 0 the memory is the same, 1 it differs, 2 the launch could not be made, or failed. */
#define _POSIX_C_SOURCE 200809L /* setenv, also with -std=c11 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

#include "launch.h"

/* The driver reserves addresses in areas of AREA_BYTES, so aligned, and the first free ones at or above the address that
 * is asked for: only whole areas, in ascending order, are where they are asked for. */
enum {
    CHUNK_BYTES = 16 << 20,
    SHOWN_DIFFERENCES = 8,
    PART_COUNT = VARIABLE_COUNT + MEMORY_COUNT,
    AREA_BYTES = 32 << 20,
    ATTEMPTS = 10,
};

typedef unsigned long long address_t;
typedef void call_t(void);

struct location {
    int type, id;
};

struct allocation_properties {
    int type, handle_types;
    struct location location;
    void *windows_data;
    unsigned char flags[8];
};

struct access {
    struct location location;
    int flags;
};

struct launch_attribute {
    unsigned id, pad;
    union {
        unsigned char bytes[64];
        unsigned long long alignment;
    } value;
};

struct launch_config {
    unsigned grid[3], block[3], shared;
    void *stream;
    struct launch_attribute *attributes;
    unsigned count;
};

struct range {
    address_t start, end;
};

static void *driver;
static char **arguments;
static address_t places[PART_COUNT + 1];

static void fail(const char *what, const char *problem)
{
    fprintf(stderr, "error: %s: %s\n", what, problem);
    exit(2);
}

static call_t *function_named(const char *name)
{
    call_t *function;
    *(void **)&function = dlsym(driver, name);
    if (!function)
        fail(name, "the driver is too old");
    return function;
}

static const char *error_name(int code)
{
    const char *name = NULL;
    int (*get)(int, const char **);
    *(void **)&get = dlsym(driver, "cuGetErrorName");
    return get && get(code, &name) == 0 && name ? name : "unknown error";
}

static void check(const char *name, int code)
{
    if (code)
        fail(name, error_name(code));
}

/* Calls a function of the driver whose parameter types are PARAMETERS. */
#define CALL(name, PARAMETERS, ...) check(#name, ((int(*) PARAMETERS)function_named(#name))(__VA_ARGS__))
#define TRY(name, PARAMETERS, ...) (((int(*) PARAMETERS)function_named(#name))(__VA_ARGS__))

static size_t part_size(int part)
{
    return part < VARIABLE_COUNT ? variables[part].size : memory[part - VARIABLE_COUNT].size;
}

static size_t total_size(void)
{
    size_t total = 0;
    for (int part = 0; part < PART_COUNT; part++)
        total += part_size(part);
    return total;
}

static FILE *open_file(const char *name)
{
    FILE *file = fopen(name, "rb");
    if (!file)
        fail(name, "cannot be read; run the launcher in its directory");
    return file;
}

static size_t file_size(FILE *file)
{
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    return size < 0 ? 0 : (size_t)size;
}

static FILE *open_memory(const char *name)
{
    FILE *file = open_file(name);
    if (file_size(file) != total_size())
        fail(name, "the file is not complete; extract the launch again");
    return file;
}

static int by_address(const void *a, const void *b)
{
    const struct memory *left = a, *right = b;
    return (left->address > right->address) - (left->address < right->address);
}

/* Whole pages that cover the memory, in ascending order. Returns how many. */
static int covering_ranges(struct range *ranges, size_t page)
{
    struct memory sorted[MEMORY_COUNT + 1];
    int count = 0;
    memcpy(sorted, memory, sizeof sorted);
    qsort(sorted, MEMORY_COUNT, sizeof *sorted, by_address);
    for (int i = 0; i < MEMORY_COUNT; i++) {
        const address_t start = sorted[i].address / page * page;
        const address_t end = (sorted[i].address + sorted[i].size + page - 1) / page * page;
        if (count == 0 || start > ranges[count - 1].end)
            ranges[count++] = (struct range){start, end};
        else if (end > ranges[count - 1].end)
            ranges[count - 1].end = end;
    }
    return count;
}

/* Replaces the process by one with other addresses. A library or the driver has these here. */
static void start_again(struct range taken)
{
    const char *text = getenv("LAUNCH_ATTEMPT");
    char next[16];
    const int attempt = text ? atoi(text) : 1;
    if (attempt < ATTEMPTS) {
        (void)personality((unsigned long)personality(0xffffffff) & ~(unsigned long)ADDR_NO_RANDOMIZE);
        snprintf(next, sizeof next, "%d", attempt + 1);
        setenv("LAUNCH_ATTEMPT", next, 1);
        execv("/proc/self/exe", arguments);
    }
    fprintf(stderr, "error: addresses %#llx to %#llx are in use in each of %d attempts; run again\n", taken.start, taken.end,
            ATTEMPTS);
    exit(2);
}

static void reserve_range(struct range range)
{
    address_t address = 0;
    CALL(cuMemAddressReserve, (address_t *, size_t, size_t, address_t, address_t), &address, range.end - range.start, 0,
         range.start, 0);
    if (address != range.start)
        start_again(range);
}

static void map_range(struct range range, int device)
{
    const struct allocation_properties properties = {.type = 1, .location = {1, device}};
    const struct access access = {{1, device}, 3};
    const size_t size = range.end - range.start;
    address_t handle = 0;
    CALL(cuMemCreate, (address_t *, size_t, const struct allocation_properties *, address_t), &handle, size,
         &properties, 0);
    CALL(cuMemMap, (address_t, size_t, size_t, address_t, address_t), range.start, size, 0, handle, 0);
    CALL(cuMemSetAccess, (address_t, size_t, const struct access *, size_t), range.start, size, &access, 1);
}

/* Maps whole pages at the addresses that memory had in the program: pointers to it lie inside memory. */
static void map_memory(int device)
{
    const struct allocation_properties properties = {.type = 1, .location = {1, device}};
    struct range ranges[MEMORY_COUNT + 1];
    size_t page;
    CALL(cuMemGetAllocationGranularity, (size_t *, const struct allocation_properties *, int), &page, &properties, 0);
    for (int i = 0, count = covering_ranges(ranges, page > AREA_BYTES ? page : AREA_BYTES); i < count; i++)
        reserve_range(ranges[i]);
    for (int i = 0, count = covering_ranges(ranges, page); i < count; i++)
        map_range(ranges[i], device);
}

/* The first image that the GPU can run. PTX is a C string. */
static void *load_module(void)
{
    int code = 0;
    for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
        FILE *file = open_file(images[i]);
        const size_t size = file_size(file);
        char *image = calloc(1, size + 1);
        void *module = NULL;
        if (!image || fread(image, 1, size, file) != size)
            fail(images[i], "cannot be read");
        fclose(file);
        code = TRY(cuModuleLoadData, (void **, const void *), &module, image);
        free(image);
        if (code == 0)
            return module;
    }
    fail("no image can be loaded on this GPU", error_name(code));
    return NULL;
}

static void *find_function(void *module)
{
    void *function = NULL;
    CALL(cuModuleGetFunction, (void **, void *, const char *), &function, module, KERNEL);
    for (int i = 0; i < FUNCTION_ATTRIBUTE_COUNT; i++) {
        const int *attribute = function_attributes[i];
        int value;
        if (TRY(cuFuncGetAttribute, (int *, int, void *), &value, attribute[0], function) == 0 && value != attribute[1])
            CALL(cuFuncSetAttribute, (void *, int, int), function, attribute[0], attribute[1]);
    }
    return function;
}

static void find_places(void *module)
{
    for (int i = 0; i < VARIABLE_COUNT; i++) {
        size_t size = 0;
        CALL(cuModuleGetGlobal_v2, (address_t *, size_t *, void *, const char *), &places[i], &size, module,
             variables[i].name);
        if (size != variables[i].size)
            fail(variables[i].name, "the variable has another size");
    }
    for (int i = 0; i < MEMORY_COUNT; i++)
        places[VARIABLE_COUNT + i] = memory[i].address;
}

static size_t read_chunk(FILE *file, char *chunk, int part, size_t offset)
{
    const size_t left = part_size(part) - offset, size = left < CHUNK_BYTES ? left : CHUNK_BYTES;
    if (fread(chunk, 1, size, file) != size)
        fail("memory", "the file cannot be read");
    return size;
}

static char *new_chunk(void)
{
    char *chunk = malloc(CHUNK_BYTES);
    if (!chunk)
        fail("malloc", "out of memory");
    return chunk;
}

static void copy_in(void)
{
    FILE *file = open_memory("before.bin");
    char *chunk = new_chunk();
    for (int part = 0; part < PART_COUNT; part++) {
        for (size_t offset = 0, size; offset < part_size(part); offset += size) {
            size = read_chunk(file, chunk, part, offset);
            CALL(cuMemcpyHtoD_v2, (address_t, const void *, size_t), places[part] + offset, chunk, size);
        }
    }
    free(chunk);
    fclose(file);
}

static void start_kernel(void *function)
{
    struct launch_attribute attributes[LAUNCH_ATTRIBUTE_COUNT + 1] = {0};
    struct launch_config config = {.shared = SHARED_BYTES, .attributes = attributes, .count = LAUNCH_ATTRIBUTE_COUNT};
    size_t size = PARAMETER_BYTES;
    void *extra[] = {(void *)1, (void *)parameters, (void *)2, &size, NULL};
    void **passed = size ? extra : NULL;
    memcpy(config.grid, grid, sizeof grid);
    memcpy(config.block, block, sizeof block);
    for (int i = 0; i < LAUNCH_ATTRIBUTE_COUNT; i++) {
        attributes[i].id = launch_attributes[i].id;
        memcpy(attributes[i].value.bytes, launch_attributes[i].value, sizeof attributes[i].value.bytes);
    }
    if (config.count)
        CALL(cuLaunchKernelEx, (const struct launch_config *, void *, void **, void **), &config, function, NULL,
             passed);
    else
        CALL(cuLaunchKernel,
             (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
             function, grid[0], grid[1], grid[2], block[0], block[1], block[2], SHARED_BYTES, NULL, NULL, passed);
}

static void show_difference(int part, size_t at, unsigned char got, unsigned char wanted)
{
    if (part < VARIABLE_COUNT)
        printf("%s", variables[part].name);
    else
        printf("%#llx", memory[part - VARIABLE_COUNT].address);
    printf(" + %zu: here 0x%02x, in the program 0x%02x\n", at, got, wanted);
}

static size_t compare_chunk(int part, size_t offset, size_t size, const char *wanted, const char *got, size_t before)
{
    size_t differences = 0;
    for (size_t i = 0; i < size; i++) {
        if (wanted[i] == got[i])
            continue;
        if (before + differences++ < SHOWN_DIFFERENCES)
            show_difference(part, offset + i, (unsigned char)got[i], (unsigned char)wanted[i]);
    }
    return differences;
}

/* The number of bytes that differ from those in the program. */
static size_t compare(void)
{
    FILE *file = open_memory("after.bin");
    char *wanted = new_chunk(), *got = new_chunk();
    size_t differences = 0;
    for (int part = 0; part < PART_COUNT; part++) {
        for (size_t offset = 0, size; offset < part_size(part); offset += size) {
            size = read_chunk(file, wanted, part, offset);
            CALL(cuMemcpyDtoH_v2, (void *, address_t, size_t), got, places[part] + offset, size);
            differences += compare_chunk(part, offset, size, wanted, got, differences);
        }
    }
    free(wanted);
    free(got);
    fclose(file);
    return differences;
}

static int by_time(const void *a, const void *b)
{
    const float left = *(const float *)a, right = *(const float *)b;
    return (left > right) - (left < right);
}

/* Launches COUNT times with the memory of before, and prints the times on the GPU. */
static void time_launches(void *function, long count)
{
    float *times = calloc((size_t)count, sizeof *times);
    void *begin = NULL, *end = NULL;
    CALL(cuEventCreate, (void **, unsigned), &begin, 0);
    CALL(cuEventCreate, (void **, unsigned), &end, 0);
    for (long i = 0; times && i < count; i++) {
        copy_in();
        CALL(cuEventRecord, (void *, void *), begin, NULL);
        start_kernel(function);
        CALL(cuEventRecord, (void *, void *), end, NULL);
        CALL(cuEventSynchronize, (void *), end);
        CALL(cuEventElapsedTime, (float *, void *, void *), &times[i], begin, end);
    }
    if (!times)
        fail("calloc", "out of memory");
    qsort(times, (size_t)count, sizeof *times, by_time);
    const float median = (times[(count - 1) / 2] + times[count / 2]) / 2;
    printf("%ld launches: median %.4f ms, min %.4f, max %.4f\n", count, median, times[0], times[count - 1]);
    free(times);
}

/* Maps the memory and makes a context, in this order: a context takes addresses, too. */
static void prepare(void)
{
    int device = 0;
    void *context = NULL;
    char name[256] = "";
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        fail(dlerror(), "install the NVIDIA driver");
    CALL(cuInit, (unsigned), 0);
    CALL(cuDeviceGet, (int *, int), &device, 0);
    CALL(cuDeviceGetName, (char *, int, int), name, sizeof name, device);
    map_memory(device);
    CALL(cuCtxCreate_v2, (void **, unsigned, int), &context, 0, device);
    for (int i = 0; i < LIMIT_COUNT; i++)
        (void)TRY(cuCtxSetLimit, (int, size_t), limits[i].limit, limits[i].value);
    printf("%s on %s\n", KERNEL, name);
}

int main(int argc, char **argv)
{
    arguments = argv;
    const long repeat = argc == 3 && strcmp(argv[1], "--repeat") == 0 ? strtol(argv[2], NULL, 10) : 0;
    if (argc != 1 && repeat <= 0)
        fail(argv[1], "the only option is --repeat N: launch N more times and print GPU times");
    fclose(open_memory("before.bin"));
    if (HAS_RESULT)
        fclose(open_memory("after.bin"));
    prepare();
    void *module = load_module();
    void *function = find_function(module);
    find_places(module);
    copy_in();
    start_kernel(function);
    CALL(cuCtxSynchronize, (void));
    const size_t differences = HAS_RESULT ? compare() : 0;
    if (!HAS_RESULT)
        puts("the launch ended here; in the program it failed or did not end, so there is no result to compare");
    else if (!total_size())
        puts("nothing was compared: no memory was saved, because no parameter has the address of an allocation that can be"
             " saved");
    else if (differences)
        printf("%zu of %zu bytes differ from the program's result\n", differences, total_size());
    else
        printf("all %zu bytes equal the program's result\n", total_size());
    if (repeat)
        time_launches(function, repeat);
    return differences ? 1 : 0;
}
