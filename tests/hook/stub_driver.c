/* A driver without a GPU, for tests of the hook only. Device memory is host memory; a kernel adds one
 * to the word that its first parameter points at; a probed kernel also fills its maps, each slot with
 * copies of (block << 32 | slot + 1). Sizes of a kernel's parameters are in its name: "add__8_4".
 *
 * Environment: STUB_LOG file that receives one line per call; STUB_FAIL_PROBED / STUB_FAIL_ORIGINAL /
 * STUB_FAIL_LOAD_PROBED / STUB_FAIL_WAIT / STUB_FAIL_EVENT result codes; STUB_SLOW milliseconds that an event
 * takes; STUB_PAIR nanoseconds between two events, of the first STUB_LONG_PAIRS pairs STUB_LONG_PAIR;
 * STUB_QUEUE milliseconds from recording an event until it is done, read anew while one is waited for;
 * STUB_HOLD milliseconds that cuCtxSynchronize holds the driver's lock; STUB_SLOW_UNLOAD milliseconds that unloading the program's module takes once its handle is free again;
 * STUB_MEMORY bytes of device memory; STUB_PRIMARY_HELD the primary context outlives its release;
 * STUB_PAGEABLE kernels reach all host memory; STUB_NO_PARAM_INFO the two functions fail as if unsupported;
 * STUB_BLOCKS, STUB_BLOCKS_PROBED blocks per SM (-1: none fits), STUB_CLUSTERS, STUB_CLUSTERS_PROBED clusters on the device;
 * STUB_THREADS_PROBED threads that a block of a probed kernel can have, as its registers allow;
 * STUB_FAIL_COPY result code of a copy on the device; STUB_CC_MINOR minor compute capability;
 * STUB_GREEN_SMS the SMs that the context has;
 * STUB_LIBRARY_VARIABLES libraries report their variables as managed (1), or not at all (2);
 * STUB_SAVE file that receives the ELF file that was loaded last;
 * STUB_TENSOR_MAPS the driver encodes tensor maps.
 * The 16 bytes behind "dump " in a probed module are recorded as it is loaded. A kernel with "constant" in its name adds
 * the constant of its module, too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_HANDLE = 400, NOT_FOUND = 500, OUT_OF_RESOURCES = 701, CAPTURE_UNSUPPORTED = 900 };

typedef unsigned long long u64;

struct module {
    uint32_t magic;
    char *text;  /* of a probed module: "//probed PARAMETERS GLOBALS [+ADDED] level,bytes …", or "//sample …" */
    struct function *functions;
    int is_library;
    uint64_t variable, constant;
};

struct function {
    uint32_t magic;
    struct function *next;
    struct module *module;
    char name[200];
    struct function *of_kernel; /* the function of a library kernel */
    int attributes[16];
    size_t sizes[64], offsets[64], n;
    int probed, sampled, n_maps, n_parameters, n_globals, tells_no_parameters;
    int levels[16], bytes[16];
};

struct stream {
    void *context;
    int capturing, strict;
};

struct event {
    void *context;
    int life; /* of the context, which may end and begin anew */
    uint64_t recorded;
    int hangs; /* behind a launch that does not end */
};

static atomic_int launched; /* STUB_HANG=N: those behind the first N do not end */
static _Thread_local void *current;
static _Thread_local int capture_mode;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct stream null_stream, thread_stream;
static atomic_int context_one, context_two; /* how often each was destroyed */
static atomic_int primary_references;
static atomic_size_t allocated;
static atomic_int captures, strict_captures;

/* A thread of the hook may be in a call while the program forks: the child must not wait for it. */
static void unlock_in_child(void)
{
    pthread_mutex_init(&mutex, NULL);
}

__attribute__((constructor)) static void expect_forks(void)
{
    pthread_atfork(NULL, NULL, unlock_in_child);
}

static long number(const char *name)
{
    const char *value = getenv(name);
    return value ? strtol(value, NULL, 10) : 0;
}

static void record(const char *format, ...)
{
    const char *path = getenv("STUB_LOG");
    if (!path || !*path)
        return;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    strcat(line, "\n");
    pthread_mutex_lock(&mutex);
    FILE *file = fopen(path, "a");
    if (file) {
        fputs(line, file);
        fclose(file);
    }
    pthread_mutex_unlock(&mutex);
}

static struct stream *stream_of(void *handle)
{
    if (handle == NULL || handle == (void *)1)
        return &null_stream;
    return handle == (void *)2 ? &thread_stream : handle;
}

/* Calls that a capture in the strictest mode forbids. */
static int forbidden(const char *what)
{
    if (atomic_load(&strict_captures) == 0 || capture_mode == 2)
        return 0;
    record("FORBIDDEN %s during capture", what);
    return 1;
}

API int cuInit(unsigned flags)
{
    (void)flags;
    record("cuInit");
    return 0;
}
API int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}
API int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal ? 101 : 0;
}
API int cuDeviceGetCount(int *count)
{
    *count = 1;
    return 0;
}
API int cuDeviceGetName(char *name, int size, int device)
{
    (void)device;
    snprintf(name, (size_t)size, "Stub GPU");
    return 0;
}
API int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = number("STUB_MEMORY") ? (size_t)number("STUB_MEMORY") : (size_t)1 << 30;
    return 0;
}
API int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == 13   ? 1980000
             : attribute == 16 ? 132
             : attribute == 38 ? 1 << 20
             : attribute == 75 ? 9
             : attribute == 76 ? (int)number("STUB_CC_MINOR")
             : attribute == 88 ? (int)number("STUB_PAGEABLE")
                               : 0;
    return 0;
}
API int cuGetErrorName(int code, const char **name)
{
    *name = code == 701   ? "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
            : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : code == 218 ? "CUDA_ERROR_INVALID_PTX"
                          : NULL;
    return *name ? 0 : INVALID_VALUE;
}

API int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
    (void)flags, (void)device;
    *context = current = current == &context_one ? (void *)&context_two : (void *)&context_one;
    return 0;
}
API int cuCtxDestroy_v2(void *context)
{
    record("cuCtxDestroy %d", context == &context_two);
    atomic_fetch_add((atomic_int *)context, 1);
    if (current == context)
        current = NULL;
    return 0;
}
API int cuCtxAttach(void **context, unsigned flags)
{
    (void)flags;
    *context = current;
    return 0;
}
API int cuCtxDetach(void *context)
{
    (void)context;
    record("cuCtxDetach");
    return 0;
}
API int cuProfilerStart(void)
{
    record("cuProfilerStart");
    return 0;
}
API int cuProfilerStop(void)
{
    record("cuProfilerStop");
    return 0;
}
/* The driver ends when this file appears, as it does with the program. */
static int deinitialized(void)
{
    const char *path = getenv("STUB_ENDED");
    return path && access(path, F_OK) == 0 ? 4 : 0;
}
API int cuCtxGetCurrent(void **context)
{
    *context = current;
    return deinitialized();
}
API int cuCtxSetCurrent(void *context)
{
    current = context;
    return 0;
}
API int cuCtxGetDevice(int *device)
{
    *device = 0;
    return current ? 0 : 201;
}
API int cuCtxSynchronize(void)
{
    record("cuCtxSynchronize%s", atomic_load(&captures) ? " FORBIDDEN during capture" : "");
    if (number("STUB_HOLD")) { /* in the middle of a function that holds a lock of the driver */
        pthread_mutex_lock(&mutex);
        usleep((useconds_t)number("STUB_HOLD") * 1000);
        pthread_mutex_unlock(&mutex);
    }
    return atomic_load(&captures) ? CAPTURE_UNSUPPORTED : 0;
}
API int cuCtxGetDevResource(void *context, unsigned *resource, int type)
{
    if (!context || type != 1 || !number("STUB_GREEN_SMS"))
        return 801;
    resource[24] = (unsigned)number("STUB_GREEN_SMS");
    return 0;
}
API int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    atomic_fetch_add(&primary_references, 1);
    *context = &context_one;
    return 0;
}
API int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    (void)device;
    *flags = 0;
    *active = atomic_load(&primary_references) > 0 || number("STUB_PRIMARY_HELD");
    return 0;
}
API int cuDevicePrimaryCtxReset_v2(int device)
{
    (void)device;
    record("cuDevicePrimaryCtxReset");
    return 0;
}
API int cuCtxFromGreenCtx(void **context, void *green)
{
    *context = green;
    return 0;
}
API int cuGreenCtxDestroy(void *green)
{
    (void)green;
    record("cuGreenCtxDestroy");
    return 0;
}
API int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    record("cuDevicePrimaryCtxRelease");
    return atomic_fetch_sub(&primary_references, 1) > 0 ? 0 : 201;
}

static void parse_name(struct function *f)
{
    const char *at = strstr(f->name, "__");
    for (at = at ? at + 2 : ""; *at >= '0' && *at <= '9' && f->n < 64;) {
        char *end;
        size_t size = strtoul(at, &end, 10), align = size > 8 ? 8 : size;
        size_t from = f->n ? f->offsets[f->n - 1] + f->sizes[f->n - 1] : 0;
        f->offsets[f->n] = (from + align - 1) / align * align;
        f->sizes[f->n++] = size;
        at = *end == '_' ? end + 1 : end;
    }
}

static void parse_probed(struct function *f)
{
    const char *text = f->module->text;
    int used = 0;
    if (!text || (strncmp(text, "//probed ", 9) != 0 && strncmp(text, "//sample ", 9) != 0))
        return;
    f->probed = 1;
    f->sampled = text[2] == 's';
    text += 9;
    int added = -1;
    sscanf(text, "%d %d%n", &f->n_parameters, &f->n_globals, &used);
    text += used;
    if (sscanf(text, " +%d%n", &added, &used) == 1)
        text += used;
    f->tells_no_parameters = added < 0;
    for (int i = 0; i < added; i++) {
        f->offsets[f->n] = f->n ? (f->offsets[f->n - 1] + f->sizes[f->n - 1] + 7) & ~(size_t)7 : 0;
        f->sizes[f->n++] = 8;
    }
    for (used = 0; sscanf(text, " %d,%d%n", &f->levels[f->n_maps], &f->bytes[f->n_maps], &used) == 2; text += used)
        f->n_maps++;
}

static struct function *function_in(struct module *module, const char *name)
{
    pthread_mutex_lock(&mutex);
    struct function *f = module->functions;
    while (f && strcmp(f->name, name) != 0)
        f = f->next;
    if (!f) {
        f = calloc(1, sizeof *f);
        f->magic = 0xF;
        f->module = module;
        snprintf(f->name, sizeof f->name, "%s", name);
        f->attributes[0] = 1024;
        f->attributes[4] = 32;
        f->attributes[8] = 48 << 10;
        parse_name(f);
        parse_probed(f);
        f->attributes[4] += f->probed ? 2 : 0;
        if (f->probed && number("STUB_THREADS_PROBED"))
            f->attributes[0] = (int)number("STUB_THREADS_PROBED");
        f->next = module->functions;
        module->functions = f;
    }
    pthread_mutex_unlock(&mutex);
    return f;
}

static _Atomic(struct module *) free_handle;

static void save_elf(const char *path, const char *code)
{
    uint64_t sections;
    uint16_t size, count;
    memcpy(&sections, code + 40, sizeof sections);
    memcpy(&size, code + 58, sizeof size);
    memcpy(&count, code + 60, sizeof count);
    FILE *file = fopen(path, "wb");
    if (file) {
        fwrite(code, 1, sections + (size_t)size * count,
               file); /* cubins have their segments before or in the sections */
        fclose(file);
    }
}

static int load(struct module **module, const void *code, int is_library)
{
    uint32_t magic;
    memcpy(&magic, code, 4);
    if (magic == 0xbadbad)
        return 200;
    const char *text = (const char *)code;
    int probed = strncmp(text, "//probed ", 9) == 0 || strncmp(text, "//sample ", 9) == 0;
    if (probed && forbidden("cuModuleLoadData"))
        return CAPTURE_UNSUPPORTED;
    if (probed && number("STUB_FAIL_LOAD_PROBED"))
        return (int)number("STUB_FAIL_LOAD_PROBED");
    struct module *again = probed ? NULL : atomic_exchange(&free_handle, NULL);
    *module = again ? again : calloc(1, sizeof **module);
    (*module)->magic = is_library ? 0xB : 0xA;
    (*module)->is_library = is_library;
    (*module)->text = probed ? strdup(text) : NULL;
    record("load%s", probed ? " probed" : "");
    if (getenv("STUB_SAVE") && memcmp(code, "\177ELF", 4) == 0)
        save_elf(getenv("STUB_SAVE"), code);
    const unsigned char *dump =
        probed && strstr(text, "dump ") ? (const unsigned char *)strstr(text, "dump ") + 5 : NULL;
    uint64_t words[2];
    if (dump) {
        memcpy(words, dump, sizeof words);
        record("dump %016llx %016llx", (u64)words[0], (u64)words[1]);
    }
    return 0;
}

static int load_file(struct module **module, const char *path, int is_library)
{
    char bytes[16] = {0};
    FILE *file = fopen(path, "rb");
    if (!file)
        return 301;
    size_t n = fread(bytes, 1, sizeof bytes - 1, file);
    fclose(file);
    return n ? load(module, bytes, is_library) : 200;
}

static int unload(struct module *module)
{
    int probed = module->text != NULL;
    while (module->functions) {
        struct function *next = module->functions->next;
        free(module->functions->of_kernel);
        free(module->functions);
        module->functions = next;
    }
    free(module->text);
    memset(module, 0, sizeof *module);
    if (!probed)
        module = atomic_exchange(&free_handle, module);
    free(module);
    record("unload%s", probed ? " probed" : "");
    if (!probed)
        usleep((useconds_t)number("STUB_SLOW_UNLOAD") * 1000);
    return 0;
}

API int cuModuleLoad(struct module **module, const char *path)
{
    return load_file(module, path, 0);
}
API int cuModuleLoadData(struct module **module, const void *code)
{
    return load(module, code, 0);
}
API int cuModuleLoadDataEx(struct module **module, const void *code, unsigned n, int *o, void **v)
{
    (void)n, (void)o, (void)v;
    return load(module, code, 0);
}
API int cuModuleLoadFatBinary(struct module **module, const void *code)
{
    return load(module, code, 0);
}
API int cuModuleUnload(struct module *module)
{
    return unload(module);
}
API int cuLibraryLoadData(struct module **library, const void *code, int *o, void **v, unsigned n, int *lo, void **lv,
                          unsigned ln)
{
    (void)o, (void)v, (void)n, (void)lo, (void)lv, (void)ln;
    return load(library, code, 1);
}
API int cuLibraryLoadFromFile(struct module **library, const char *path, int *o, void **v, unsigned n, int *lo,
                              void **lv, unsigned ln)
{
    (void)o, (void)v, (void)n, (void)lo, (void)lv, (void)ln;
    return load_file(library, path, 1);
}
API int cuLibraryUnload(struct module *library)
{
    return unload(library);
}
API int cuModuleGetFunction(struct function **f, struct module *module, const char *name)
{
    *f = function_in(module, name);
    return 0;
}
API int cuLibraryGetKernel(struct function **f, struct module *library, const char *name)
{
    *f = function_in(library, name);
    return 0;
}
API int cuLibraryGetModule(struct module **module, struct module *library)
{
    *module = library;
    return 0;
}
API int cuModuleGetFunctionCount(unsigned *n, struct module *module)
{
    *n = 0;
    for (struct function *f = module->functions; f; f = f->next)
        ++*n;
    return 0;
}
API int cuModuleEnumerateFunctions(struct function **functions, unsigned n, struct module *module)
{
    unsigned i = 0;
    for (struct function *f = module->functions; f && i < n; f = f->next)
        functions[i++] = f;
    return 0;
}
API int cuLibraryGetKernelCount(unsigned *n, struct module *library)
{
    return cuModuleGetFunctionCount(n, library);
}
API int cuLibraryEnumerateKernels(struct function **kernels, unsigned n, struct module *library)
{
    return cuModuleEnumerateFunctions(kernels, n, library);
}

static int get_global(u64 *address, size_t *bytes, struct module *module, const char *name)
{
    uint64_t *variable = strcmp(name, "shared_variable") == 0   ? &module->variable
                         : strcmp(name, "shared_constant") == 0 ? &module->constant
                                                                : NULL;
    if (!variable)
        return NOT_FOUND;
    *address = (u64)(uintptr_t)variable;
    *bytes = sizeof *variable;
    return 0;
}
API int cuModuleGetGlobal_v2(u64 *a, size_t *b, struct module *m, const char *n)
{
    return get_global(a, b, m, n);
}
API int cuLibraryGetGlobal(u64 *a, size_t *b, struct module *m, const char *n)
{
    return number("STUB_LIBRARY_VARIABLES") ? NOT_FOUND : get_global(a, b, m, n);
}
API int cuLibraryGetManaged(u64 *a, size_t *b, struct module *m, const char *n)
{
    return number("STUB_LIBRARY_VARIABLES") == 1 ? get_global(a, b, m, n) : NOT_FOUND;
}

API int cuKernelGetFunction(struct function **f, struct function *kernel)
{
    if (!kernel->module->is_library)
        return INVALID_HANDLE;
    pthread_mutex_lock(&mutex);
    if (!kernel->of_kernel) {
        kernel->of_kernel = malloc(sizeof *kernel);
        *kernel->of_kernel = *kernel;
    }
    *f = kernel->of_kernel;
    pthread_mutex_unlock(&mutex);
    return 0;
}
API int cuKernelGetName(const char **name, struct function *f)
{
    *name = f->name;
    return 0;
}
API int cuKernelGetLibrary(struct module **m, struct function *f)
{
    *m = f->module;
    return f->module->is_library ? 0 : INVALID_HANDLE;
}
API int cuFuncGetName(const char **name, struct function *f)
{
    *name = f->name;
    return number("STUB_NO_NAMES") ? INVALID_HANDLE : 0;
}
API int cuFuncGetModule(struct module **m, struct function *f)
{
    *m = f->module;
    return f->module->is_library ? INVALID_HANDLE : 0;
}

static int param_info(struct function *f, size_t i, size_t *offset, size_t *size)
{
    if (number("STUB_NO_PARAM_INFO") || f->tells_no_parameters)
        return 801;
    if (i >= f->n)
        return INVALID_VALUE;
    *offset = f->offsets[i];
    *size = f->sizes[i];
    return 0;
}
API int cuFuncGetParamInfo(struct function *f, size_t i, size_t *o, size_t *s)
{
    return param_info(f, i, o, s);
}
API int cuKernelGetParamInfo(struct function *f, size_t i, size_t *o, size_t *s)
{
    return param_info(f, i, o, s);
}
/* Drivers before 13.1 have no such call. */
static int param_count(struct function *f, size_t *n)
{
    *n = f->n;
    return number("STUB_COUNTS_PARAMETERS") ? 0 : 500;
}
API int cuFuncGetParamCount(struct function *f, size_t *n)
{
    return param_count(f, n);
}
API int cuKernelGetParamCount(struct function *f, size_t *n)
{
    return param_count(f, n);
}

API int cuFuncGetAttribute(int *value, int attribute, struct function *f)
{
    if (attribute < 0 || attribute >= 16)
        return INVALID_VALUE;
    *value = f->attributes[attribute];
    return 0;
}
API int cuFuncSetAttribute(struct function *f, int attribute, int value)
{
    record("attribute %s%s %d=%d", f->probed ? "probed " : "", f->name, attribute, value);
    f->attributes[attribute] = value;
    return 0;
}
API int cuKernelSetAttribute(int attribute, int value, struct function *f, int device)
{
    (void)device;
    return cuFuncSetAttribute(f, attribute, value);
}
API int cuFuncSetCacheConfig(struct function *f, int config)
{
    record("cache %s%s %d", f->probed ? "probed " : "", f->name, config);
    return 0;
}
API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, struct function *f, int threads, size_t shared)
{
    (void)shared;
    record("occupancy %s%s", f->probed ? "probed " : "", f->name);
    const long chosen = number(f->probed ? "STUB_BLOCKS_PROBED" : "STUB_BLOCKS");
    *blocks = chosen < 0 ? 0 : chosen ? (int)chosen : 2048 / threads;
    return 0;
}

/* The place of a block among those that measure, as a kernel finds it; -1: it is none of them. */
static int64_t place_of(struct function *f, uint32_t block, void **parameters)
{
    uint32_t blocks[2], step[2];
    if (!f->sampled)
        return block;
    memcpy(blocks, parameters[f->n_parameters + f->n_maps], sizeof blocks);
    memcpy(step, parameters[f->n_parameters + f->n_maps + 1], sizeof step);
    uint32_t distance = block - blocks[0], place = (uint32_t)((uint64_t)(uint32_t)(2 * distance) * step[1] >> 32);
    return place * step[0] == distance && place < blocks[1] ? (int64_t)place : -1;
}

static void fill_maps(struct function *f, uint64_t blocks, uint64_t threads, void **parameters)
{
    for (int m = 0; m < f->n_maps; m++) {
        char *at;  /* may be aligned to 4 bytes only */
        uint64_t slots = f->levels[m] ? (threads + 31) / 32 : threads, slot_words = (uint64_t)f->bytes[m] / 8;
        memcpy(&at, parameters[f->n_parameters + m], sizeof at);
        for (uint64_t block = 0; block < blocks; block++) {
            int64_t place = place_of(f, (uint32_t)block, parameters);
            for (uint64_t i = 0; place >= 0 && i < slots * slot_words; i++) {
                char *word = at + 8 * ((uint64_t)place * slots * slot_words + i);
                uint64_t before, after = block << 32 | (i / slot_words + 1);
                memcpy(&before, word, sizeof before);
                if (before)
                    record("DIRTY map %d of %s", m, f->name);
                memcpy(word, &after, sizeof after);
            }
        }
    }
}

static int launch(const char *form, struct function *f, uint64_t blocks, uint64_t threads, void *stream,
                  void **parameters, void **extra)
{
    if (f->magic != 0xF)
        return INVALID_HANDLE;
    if (parameters && extra)
        return INVALID_VALUE;
    if (!blocks || !threads)
        return INVALID_VALUE;
    record("launch %s%s %s", f->probed ? "probed " : "", f->name, form);
    launched++;
    if (threads > (uint64_t)f->attributes[0])
        return OUT_OF_RESOURCES;
    if (number("STUB_SLOW_LAUNCH"))
        usleep((useconds_t)number("STUB_SLOW_LAUNCH") * 1000);
    if (f->sampled && number("STUB_FAIL_SAMPLED"))
        return (int)number("STUB_FAIL_SAMPLED");
    if (number(f->probed ? "STUB_FAIL_PROBED" : "STUB_FAIL_ORIGINAL"))
        return (int)number(f->probed ? "STUB_FAIL_PROBED" : "STUB_FAIL_ORIGINAL");
    if (stream_of(stream)->capturing) {
        record("captured %s%s", f->probed ? "probed " : "", f->name);
        return 0;
    }
    _Atomic uint64_t *word = NULL;
    if (f->n && f->sizes[0] == 8 && parameters)
        memcpy(&word, parameters[0], sizeof word);
    else if (f->n && f->sizes[0] == 8 && extra)
        memcpy(&word, extra[1], sizeof word);
    if (word)
        atomic_fetch_add(word, 1 + (strstr(f->name, "constant") ? f->module->constant : 0));
    if (f->probed) {
        fill_maps(f, blocks, threads, parameters);
        for (int i = 0; i < f->n_globals; i++) {
            _Atomic uint64_t *variable;
            memcpy(&variable, parameters[f->n_parameters + f->n_maps + 2 * f->sampled + i], sizeof variable);
            atomic_fetch_add(variable, 1);
        }
    }
    return 0;
}

#define GEOMETRY \
    unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream
#define COUNTS (uint64_t)gx * gy * gz, (uint64_t)bx * by * bz
API int cuLaunchKernel(struct function *f, GEOMETRY, void **p, void **e)
{
    (void)shared;
    return launch("kernel", f, COUNTS, stream, p, e);
}
API int cuLaunchKernel_ptsz(struct function *f, GEOMETRY, void **p, void **e)
{
    (void)shared;
    return launch("kernel_ptsz", f, COUNTS, stream ? stream : (void *)2, p, e);
}
API int cuLaunchCooperativeKernel(struct function *f, GEOMETRY, void **p)
{
    (void)shared;
    return launch("cooperative", f, COUNTS, stream, p, NULL);
}
API int cuLaunchCooperativeKernel_ptsz(struct function *f, GEOMETRY, void **p)
{
    (void)shared;
    return launch("cooperative_ptsz", f, COUNTS, stream, p, NULL);
}

struct config {
    unsigned grid[3], block[3], shared;
    void *stream, *attributes;
    unsigned n;
};
static int launch_ex(const char *form, const struct config *c, struct function *f, void **p, void **e)
{
    char text[64];
    snprintf(text, sizeof text, "%s attributes %u", form, c->n);
    return launch(text, f, (uint64_t)c->grid[0] * c->grid[1] * c->grid[2],
                  (uint64_t)c->block[0] * c->block[1] * c->block[2], c->stream, p, e);
}
API int cuOccupancyMaxActiveClusters(int *clusters, struct function *f, const struct config *c)
{
    const struct {
        unsigned id, pad;
        unsigned cluster[3];
    } *attribute = c->attributes;
    if (c->n != 1 || attribute->id != 4)
        return INVALID_VALUE;
    record("clusters %s%s %u", f->probed ? "probed " : "", f->name, attribute->cluster[0]);
    *clusters = (int)number(f->probed ? "STUB_CLUSTERS_PROBED" : "STUB_CLUSTERS");
    return *clusters ? 0 : INVALID_VALUE;
}
API int cuLaunchKernelEx(const struct config *c, struct function *f, void **p, void **e)
{
    return launch_ex("ex", c, f, p, e);
}
API int cuLaunchKernelEx_ptsz(const struct config *c, struct function *f, void **p, void **e)
{
    return launch_ex("ex_ptsz", c, f, p, e);
}

/* Of a large block the rest stays untouched: gigabytes that were written would be taken from other tests. */
enum { MOST_FILLED = 64 << 20, HUGE_PAGE = 2 << 20 };

API int cuMemAlloc_v2(u64 *memory, size_t size)
{
    size_t limit = number("STUB_MEMORY") ? (size_t)number("STUB_MEMORY") : SIZE_MAX;
    if (forbidden("cuMemAlloc"))
        return CAPTURE_UNSUPPORTED;
    if (!size)
        return INVALID_VALUE;
    if (atomic_load(&allocated) + size > limit)
        return OUT_OF_MEMORY;
    size_t *block = NULL;
    if (posix_memalign((void **)&block, size < HUGE_PAGE ? 256 : HUGE_PAGE, size + 256))
        return OUT_OF_MEMORY;
    if (size >= HUGE_PAGE) /* with small pages, to fill 64 MB is most of a program's time */
        madvise(block, size, MADV_HUGEPAGE);
    memset(block, 0xA5, size < MOST_FILLED ? size + 256 : MOST_FILLED); /* what no one clears shows */
    *block = size;
    atomic_fetch_add(&allocated, size);
    *memory = (u64)(uintptr_t)block + 256;
    return 0;
}
API int cuMemAllocPitch_v2(u64 *memory, size_t *pitch, size_t width, size_t height, unsigned element)
{
    (void)element;
    *pitch = (width + 511) / 512 * 512;
    return cuMemAlloc_v2(memory, *pitch * height);
}
API int cuMemAllocManaged(u64 *memory, size_t size, unsigned flags)
{
    (void)flags;
    return cuMemAlloc_v2(memory, size);
}
API int cuMemAllocAsync(u64 *memory, size_t size, void *stream)
{
    (void)stream;
    return cuMemAlloc_v2(memory, size);
}
API int cuMemCreate(u64 *handle, size_t size, const void *properties, u64 flags)
{
    (void)properties, (void)flags;
    return cuMemAlloc_v2(handle, size);
}
API int cuMemFree_v2(u64 memory)
{
    record("cuMemFree");
    if (forbidden("cuMemFree"))
        return CAPTURE_UNSUPPORTED;
    if (!memory)
        return 0;
    size_t *block = (size_t *)(uintptr_t)(memory - 256);
    atomic_fetch_sub(&allocated, *block);
    free(block);
    return 0;
}
API int cuMemFreeAsync(u64 memory, void *stream)
{
    (void)stream;
    return cuMemFree_v2(memory);
}
API int cuMemAllocHost_v2(void **memory, size_t size)
{
    *memory = malloc(size);
    return 0;
}
API int cuMemHostAlloc(void **memory, size_t size, unsigned flags)
{
    (void)flags;
    *memory = malloc(size);
    return 0;
}
API int cuMemFreeHost(void *memory)
{
    free(memory);
    return 0;
}
API int cuCtxGetLimit(size_t *value, int limit)
{
    (void)limit;
    *value = 1024;
    return current ? 0 : 201;
}

API int cuMemGetInfo_v2(size_t *unused, size_t *total)
{
    cuDeviceTotalMem_v2(total, 0);
    *unused = *total - atomic_load(&allocated);
    return 0;
}
API int cuMemsetD8Async(u64 memory, unsigned char value, size_t size, void *stream)
{
    (void)stream;
    memset((void *)(uintptr_t)memory, value, size);
    return 0;
}
API int cuMemcpyDtoHAsync_v2(void *to, u64 from, size_t size, void *stream)
{
    (void)stream;
    memcpy(to, (void *)(uintptr_t)from, size);
    return 0;
}
API int cuMemcpyHtoDAsync_v2(u64 to, const void *from, size_t size, void *stream)
{
    (void)stream;
    memcpy((void *)(uintptr_t)to, from, size);
    return 0;
}
API int cuMemcpyDtoDAsync_v2(u64 to, u64 from, size_t size, void *stream)
{
    record("copy %s", stream == (void *)2 ? "thread" : stream ? "stream" : "null");
    if (number("STUB_FAIL_COPY"))
        return (int)number("STUB_FAIL_COPY");
    memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, size);
    return 0;
}

API int cuStreamCreate(struct stream **stream, unsigned flags)
{
    (void)flags;
    *stream = calloc(1, sizeof **stream);
    (*stream)->context = current;
    return 0;
}
API int cuStreamDestroy_v2(struct stream *stream)
{
    record("cuStreamDestroy");
    stream->capturing = -1;
    free(stream);
    return 0;
}
API int cuStreamSynchronize(void *stream)
{
    (void)stream;
    return 0;
}
API int cuStreamIsCapturing(void *stream, int *status)
{
    *status = stream_of(stream)->capturing;
    return 0;
}
API int cuStreamBeginCapture_v2(void *stream, int mode)
{
    stream_of(stream)->capturing = 1;
    stream_of(stream)->strict = mode == 0;
    atomic_fetch_add(&captures, 1);
    atomic_fetch_add(&strict_captures, mode == 0);
    return 0;
}
API int cuStreamEndCapture(void *stream, void **graph)
{
    *graph = NULL;
    if (!stream_of(stream)->capturing)
        return 903;
    stream_of(stream)->capturing = 0;
    atomic_fetch_sub(&captures, 1);
    atomic_fetch_sub(&strict_captures, stream_of(stream)->strict);
    return 0;
}
API int cuThreadExchangeStreamCaptureMode(int *mode)
{
    int before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return 0;
}

API int cuEventCreate(struct event **event, unsigned flags)
{
    (void)flags;
    if (!current || number("STUB_FAIL_EVENT"))
        return current ? (int)number("STUB_FAIL_EVENT") : 201;
    *event = calloc(1, sizeof **event);
    (*event)->context = current;
    (*event)->life = atomic_load((atomic_int *)current);
    return 0;
}
static int is_stale(const struct event *event)
{
    if (event->life == atomic_load((atomic_int *)event->context))
        return 0;
    record("EVENT OF A DESTROYED CONTEXT");
    return 1;
}
static uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
API int cuEventDestroy_v2(struct event *event)
{
    free(event);
    return 0;
}
API int cuEventRecord(struct event *event, void *stream)
{
    void *context = stream_of(stream)->context;
    if (is_stale(event) || event->context != (context ? context : current))
        return INVALID_HANDLE;
    if (stream_of(stream)->capturing)
        record("EVENT IN CAPTURE");
    record("cuEventRecord %s", stream == (void *)2 ? "thread" : stream ? "stream" : "null");
    event->recorded = nanoseconds();
    event->hangs = number("STUB_HANG") && launched > number("STUB_HANG");
    return 0;
}
static int is_queued(const struct event *event)
{
    return nanoseconds() - event->recorded < (uint64_t)number("STUB_QUEUE") * 1000000u;
}

API int cuEventQuery(struct event *event)
{
    if (forbidden("cuEventQuery") || is_stale(event))
        return CAPTURE_UNSUPPORTED;
    return is_queued(event) || event->hangs ? 600 : 0;
}
API int cuEventSynchronize(struct event *event)
{
    while (is_queued(event))
        usleep(500);
    if (number("STUB_SLOW"))
        usleep((useconds_t)number("STUB_SLOW") * 1000);
    return (int)number("STUB_FAIL_WAIT");
}
API int cuEventElapsedTime(float *ms, struct event *from, struct event *to)
{
    static atomic_int asked;
    *ms = (float)(to->recorded - from->recorded) / 1e6f;
    if (getenv("STUB_PAIR"))
        *ms = (float)number(asked++ < number("STUB_LONG_PAIRS") ? "STUB_LONG_PAIR" : "STUB_PAIR") / 1e6f;
    return 0;
}

/* The driver's own look-up: the form that the version and the flags ask for. */
static int look_up(const char *name, void **address, int version, uint64_t flags)
{
    static const char *const second[] = {"cuMemAlloc",           "cuMemFree",        "cuCtxDestroy",  "cuStreamDestroy",
                                         "cuStreamBeginCapture", "cuGetProcAddress", "cuMemAllocHost"};
    char form[128];
    snprintf(form, sizeof form, "%s", name);
    for (size_t i = 0; i < sizeof second / sizeof *second; i++)
        if (strcmp(name, second[i]) == 0 && version >= (i == 5 ? 12000 : i == 4 ? 10010 : 4000))
            strcat(form, "_v2");
    Dl_info info;
    dladdr((void *)look_up, &info);
    void *self = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (flags & 2) {
        strcat(form, "_ptsz");
        if ((*address = dlsym(self, form)))
            return 0;
        form[strlen(form) - 5] = '\0';
    }
    *address = dlsym(self, form);
    return *address ? 0 : NOT_FOUND;
}
API int cuGetProcAddress(const char *name, void **address, int version, uint64_t flags)
{
    return look_up(name, address, version, flags);
}
API int cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags, int *status)
{
    int result = look_up(name, address, version, flags);
    if (status)
        *status = result ? 1 : 0;
    return result;
}

/* For the test of trampolines: every argument register counts. */
API int cuTexRefSetAddress2D_v3(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h)
{
    return (int)(a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h);
}
API int cuTexRefSetMipmapLevelBias(double a, double b, double c, double d, double e, double f, double g, double h)
{
    return (int)(a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h);
}

/* Sizes and boxes less 1, strides and type in two parts, and the bytes of a box, as in maps of GPUs. */
struct tensor_map {
    uint64_t address;
    uint16_t type, unused[3];
    uint32_t strides[4], sizes[5];
    uint8_t box[5], more[3];
    uint16_t steps, high;
    uint32_t box_bytes;
    uint8_t rest[60];
};

enum { INVALID_CONTEXT = 201, NOT_SUPPORTED = 801 };

API int cuTensorMapEncodeTiled(struct tensor_map *map, int type, unsigned rank, uint64_t address, const uint64_t *sizes,
                               const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                               int swizzle, int promotion, int fill)
{
    if (!getenv("STUB_TENSOR_MAPS"))
        return NOT_SUPPORTED;
    if (!current)
        return INVALID_CONTEXT;
    if (rank < 1 || rank > 5 || interleave || swizzle || promotion || fill)
        return INVALID_VALUE;
    static const uint8_t sizes_of_types[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    const unsigned number = type == 11 ? 7 | 1 << 8 : type == 12 ? 10 | 1 << 8 : (unsigned)type;
    *map = (struct tensor_map){.address = address, .type = (uint16_t)(number << 1), .box_bytes = sizes_of_types[type]};
    for (unsigned i = 0; i < rank; i++) {
        map->sizes[i] = (uint32_t)(sizes[i] - 1);
        map->box[i] = (uint8_t)(box[i] - 1);
        map->box_bytes *= box[i];
        map->steps |= (uint16_t)((steps[i] - 1) << 3 * i);
        if (i + 1 < rank) {
            map->strides[i] = (uint32_t)(strides[i] >> 4);
            map->high |= (uint16_t)(strides[i] >> 36 << 4 * i);
        }
    }
    return 0;
}

API int cuTensorMapEncodeIm2col(struct tensor_map *map, int type, unsigned rank, uint64_t address,
                                const uint64_t *sizes, const uint64_t *strides, const int *lower, const int *upper,
                                unsigned channels, unsigned pixels, const uint32_t *steps, int interleave, int swizzle,
                                int promotion, int fill)
{
    const uint32_t box[] = {channels, pixels, 1, 1, 1};
    return lower && upper ? cuTensorMapEncodeTiled(map, type, rank, address, sizes, strides, box, steps, interleave,
                                                   swizzle, promotion, fill)
                          : INVALID_VALUE;
}

API int cuTensorMapEncodeIm2colWide(struct tensor_map *map, int type, unsigned rank, uint64_t address,
                                    const uint64_t *sizes, const uint64_t *strides, int lower, int upper,
                                    unsigned channels, unsigned pixels, const uint32_t *steps, int interleave, int mode,
                                    int swizzle, int promotion, int fill)
{
    return mode ? INVALID_VALUE
                : cuTensorMapEncodeIm2col(map, type, rank, address, sizes, strides, &lower, &upper, channels, pixels,
                                          steps, interleave, swizzle, promotion, fill);
}

API int cuTensorMapReplaceAddress(struct tensor_map *map, uint64_t address)
{
    if (!getenv("STUB_TENSOR_MAPS"))
        return NOT_SUPPORTED;
    map->address = address;
    return 0;
}
