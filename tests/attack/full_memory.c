/* Fills the device's memory but for what probes hold, and calls one function after the other that then lacks memory.
 * Prints the name and the result of each that fails. */
#include "simulated.h"

enum { MOST_PIECES = 4096, LARGE = 16 << 20, SMALL = 1 << 15, LEFT = 1 << 18, LAUNCHES = 3 };

static void *context, *module, *function, *graph;
static uint64_t word, pieces[MOST_PIECES];
static int n_pieces;

static size_t unused_memory(void)
{
    size_t unused, total;
    CHECK(cuMemGetInfo_v2(&unused, &total));
    return unused;
}

static void fill(void)
{
    for (size_t unused; (unused = unused_memory()) >= LEFT && n_pieces < MOST_PIECES;)
        CHECK(cuMemAlloc_v2(&pieces[n_pieces++], unused > 4 * LARGE ? LARGE : SMALL));
}

static void empty(void)
{
    while (n_pieces)
        CHECK(cuMemFree_v2(pieces[--n_pieces]));
}

static int result_of(const char *name, int result)
{
    if (result)
        printf("%s %d\n", name, result);
    return !result;
}

/* Calls FUNCTION with full memory, and UNDOES it. */
#define TRY(call, undo)                          \
    do {                                         \
        for (int i = 0; i < LAUNCHES; i++)       \
            CHECK(launch(function, NULL, word)); \
        fill();                                  \
        if (result_of(#call, call))              \
            CHECK(undo);                         \
        CHECK(cuCtxSetCurrent(context));         \
        empty();                                 \
    } while (0)

static void try_allocations(void)
{
    uint64_t memory;
    size_t pitch;
    void *host;
    TRY(cuMemAlloc_v2(&memory, 1 << 20), cuMemFree_v2(memory));
    TRY(cuMemAllocAsync(&memory, 1 << 20, NULL), cuMemFree_v2(memory));
    TRY(cuMemAllocManaged(&memory, 1 << 20, 1), cuMemFree_v2(memory));
    TRY(cuMemAllocPitch_v2(&memory, &pitch, 1 << 10, 1 << 10, 4), cuMemFree_v2(memory));
    TRY(cuMemAllocHost_v2(&host, (size_t)4 << 30), cuMemFreeHost(host));
}

static void try_objects(void)
{
    void *made;
    TRY(cuStreamCreate(&made, 0), cuStreamDestroy_v2(made));
    TRY(cuStreamCreateWithPriority(&made, 0, 0), cuStreamDestroy_v2(made));
    TRY(cuEventCreate(&made, 0), cuEventDestroy_v2(made));
    TRY(cuModuleLoadData(&made, ADD), cuModuleUnload(made));
    TRY(cuModuleLoadDataEx(&made, ADD, 0, NULL, NULL), cuModuleUnload(made));
    TRY(cuLibraryLoadData(&made, ADD, NULL, NULL, 0, NULL, NULL, 0), cuLibraryUnload(made));
    TRY(cuCtxCreate_v2(&made, 0, 0), cuCtxDestroy_v2(made));
    TRY(cuCtxCreate_v4(&made, NULL, 0, 0), cuCtxDestroy_v2(made));
    TRY(cuDevicePrimaryCtxRetain(&made, 0), cuDevicePrimaryCtxRelease_v2(0));
}

static void try_graphs(void)
{
    void *executable;
    TRY(cuGraphInstantiate_v2(&executable, graph, NULL, NULL, 0), cuGraphExecDestroy(executable));
    TRY(cuGraphInstantiateWithFlags(&executable, graph, 0), cuGraphExecDestroy(executable));
    CHECK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    for (int i = 0; i < LAUNCHES; i++)
        CHECK(cuGraphLaunch(executable, NULL)); /* from here on there may be a probed copy */
    TRY(cuGraphUpload(executable, NULL), 0);
    CHECK(cuGraphExecDestroy(executable));
}

int main(void)
{
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    function = loaded(&module);
    word = new_word();
    graph = captured(function, word);
    try_allocations();
    try_objects();
    try_graphs();
    return 0;
}
