/* A small program with something of each kind: kernels of a module and of a library, memory, streams, events, ranges of
 * names, launches from two threads; it unloads a module in use and loads another.
 *
 * With an argument it does not write what its kernels counted: in a benchmark they run several times, and here what they
 * count in is not memory of a GPU, which would be put back.
 *
 * No matter what fails, its output and status are the same, and the trace can be read. */
#include "gpu.h"

int cuMemAlloc_v2(unsigned long long *memory, size_t size);
int cuMemFree_v2(unsigned long long memory);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamDestroy_v2(void *stream);
int cuLibraryLoadData(void **library, const void *code, void *a, void *b, unsigned c, void *d, void *e, unsigned f);
int cuLibraryGetKernel(void **kernel, void *library, const char *name);
int cuModuleUnload(void *module);
int cuCtxSynchronize(void);
int cuCtxGetCurrent(void **context);

static uint64_t word;

static void add(void *kernel, unsigned blocks, void *stream)
{
    uint64_t *address = &word;
    void *parameters[] = {&address};
    must(cuLaunchKernel(kernel, blocks, 1, 1, 64, 1, 1, 0, stream, parameters, NULL) == 0, "a launch failed");
}

static void *add_here(void *kernel)
{
    must(cuCtxSetCurrent(context) == 0, "no context");
    for (int i = 0; i < 3; i++)
        add(kernel, 4, NULL);
    return NULL;
}

static int is_current(void)
{
    void *current = NULL;
    return !cuCtxGetCurrent(&current) && current == context;
}

int main(int argc, char **argv)
{
    unsigned long long memory;
    void *stream, *library, *module, *function, *kernel = kernel_named("add__8");
    pthread_t thread;
    must(!cuMemAlloc_v2(&memory, 4096) && !cuStreamCreate(&stream, 0), "no memory");
    for (unsigned i = 0; i < 4; i++)
        add(kernel, 2 + i % 2, i % 2 ? stream : NULL);
    must(!cuLibraryLoadData(&library, ".version 8.0\n", NULL, NULL, 0, NULL, NULL, 0) &&
             !cuLibraryGetKernel(&function, library, "more__8"),
         "no library");
    add(function, 3, stream);
    pthread_create(&thread, NULL, add_here, kernel);
    pthread_join(thread, NULL);
    must(!cuModuleLoadData(&module, ".version 8.0\n") && !cuModuleGetFunction(&function, module, "last__8"),
         "no module");
    add(function, 1, stream);
    must(!cuCtxSynchronize() && !cuModuleUnload(module) && is_current(), "another context");
    must(!cuStreamDestroy_v2(stream) && !cuMemFree_v2(memory), "no end");
    (void)argv;
    printf("%llu\n", argc > 1 ? 0ull : (unsigned long long)word);
    return 5;
}
