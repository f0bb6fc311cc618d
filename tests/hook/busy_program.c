/* Many threads that load, launch, capture and unload at the same time, for the sanitizers to watch. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuCtxSetCurrent(void *context);
int cuCtxDestroy_v2(void *context);
int cuModuleLoadData(void **module, const void *image);
int cuModuleUnload(void *module);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuLibraryLoadData(void **library, const void *code, void *a, void *b, unsigned n, void *c, void *d, unsigned m);
int cuLibraryGetKernel(void **kernel, void *library, const char *name);
int cuLibraryUnload(void *library);
int cuFuncSetAttribute(void *function, int attribute, int value);
int cuMemAlloc_v2(uint64_t *memory, size_t size);
int cuMemFree_v2(uint64_t memory);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamDestroy_v2(void *stream);
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamEndCapture(void *stream, void **graph);
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra);

enum { THREADS = 6, TURNS = 6 };

static void *context, *shared_function;
static _Atomic uint64_t *word;
static atomic_int failures;
static int launches = 30; /* of each turn, or BUSY_LAUNCHES */

static void check(int result, const char *what)
{
    if (result) {
        fprintf(stderr, "%s: %d\n", what, result);
        atomic_fetch_add(&failures, 1);
    }
}

static void launch(void *function, void *stream)
{
    uint64_t address = (uint64_t)(uintptr_t)word;
    void *parameters[] = {&address};
    const char *blocks = getenv("BUSY_BLOCKS");
    check(cuLaunchKernel(function, blocks ? (unsigned)atoi(blocks) : 4, 1, 1, 100, 1, 1, 0, stream, parameters, NULL),
          "launch");
}

static void one_turn(int turn)
{
    static const char ptx[] = "\n .version 8.0\n";
    void *module, *library, *function, *kernel, *stream, *graph;
    char name[32];
    uint64_t memory;
    snprintf(name, sizeof name, "turn%d__8", turn);
    check(cuModuleLoadData(&module, ptx), "load");
    check(cuModuleGetFunction(&function, module, name), "function");
    check(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0), "library");
    check(cuLibraryGetKernel(&kernel, library, name), "kernel");
    check(cuStreamCreate(&stream, 1), "stream");
    check(cuMemAlloc_v2(&memory, 4096), "memory");
    for (int i = 0; i < launches; i++) {
        launch(shared_function, i % 3 ? stream : NULL);
        launch(i % 2 ? function : kernel, stream);
    }
    check(cuFuncSetAttribute(function, 8, 65536), "attribute");
    check(cuStreamBeginCapture_v2(stream, 2), "begin");
    launch(function, stream);
    check(cuStreamEndCapture(stream, &graph), "end");
    check(cuStreamDestroy_v2(stream), "destroy");
    check(cuMemFree_v2(memory), "free");
    check(cuModuleUnload(module), "unload");
    check(cuLibraryUnload(library), "unload library");
}

static void *work(void *unused)
{
    (void)unused;
    check(cuCtxSetCurrent(context), "context");
    for (int turn = 0; turn < TURNS; turn++)
        one_turn(turn);
    return NULL;
}

int main(void)
{
    void *module;
    uint64_t memory;
    pthread_t threads[THREADS];
    const char *wanted = getenv("BUSY_LAUNCHES");
    if (wanted)
        launches = atoi(wanted);
    check(cuInit(0), "init");
    check(cuCtxCreate_v2(&context, 0, 0), "create");
    check(cuModuleLoadData(&module, ".version 8.0\n"), "load");
    check(cuModuleGetFunction(&shared_function, module, "shared__8"), "function");
    check(cuMemAlloc_v2(&memory, 8), "memory");
    word = (_Atomic uint64_t *)(uintptr_t)memory;
    atomic_store(word, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    uint64_t expected = (uint64_t)THREADS * TURNS * (unsigned)launches * 2;
    if (atomic_load(word) != expected) {
        fprintf(stderr, "%llu launches took effect, not %llu\n", (unsigned long long)atomic_load(word),
                (unsigned long long)expected);
        return 2;
    }
    check(cuMemFree_v2(memory), "free");
    check(cuCtxDestroy_v2(context), "destroy");
    return atomic_load(&failures) ? 1 : 0;
}
