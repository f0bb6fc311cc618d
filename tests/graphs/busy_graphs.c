/* Threads that capture, instantiate, update, replay and destroy graphs at the same time, each with kernels of its own that come
 * and go, for the sanitizers to watch. Prints what is in each thread's words. With GRAPHS_UNTIL all of it is done again, with
 * the same output, until the log of tui-probe has this number of probed replays, which begin when the probed kernels are made. */
#include <glob.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuCtxSetCurrent(void *context);
int cuCtxDestroy_v2(void *context);
int cuModuleLoadData(void **module, const void *image);
int cuModuleUnload(void *module);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuLibraryLoadData(void **library, const void *code, void *a, void *b, unsigned n, void *c, void *d, unsigned m);
int cuLibraryGetKernel(void **kernel, void *library, const char *name);
int cuKernelGetFunction(void **function, void *kernel);
int cuLibraryUnload(void *library);
int cuMemAlloc_v2(uint64_t *memory, size_t size);
int cuMemFree_v2(uint64_t memory);
int cuMemsetD8_v2(uint64_t memory, unsigned char value, size_t size);
int cuMemcpyDtoH_v2(void *to, uint64_t memory, size_t size);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamSynchronize(void *stream);
int cuStreamDestroy_v2(void *stream);
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamEndCapture(void *stream, void **graph);
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags);
int cuGraphLaunch(void *executable, void *stream);
int cuGraphExecUpdate_v2(void *executable, void *graph, void *info);
int cuGraphClone(void **clone, void *graph);
int cuGraphDestroy(void *graph);
int cuGraphExecDestroy(void *executable);
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra);

enum { MOST_THREADS = 16, REPLAYS = 12, WORDS = 64 };

static void *context;
static const char *ptx;
static int n_threads = 4, n_turns = 6;
static uint32_t sums[MOST_THREADS];

#define CHECK(call)                                                              \
    do {                                                                         \
        int result = (call);                                                     \
        if (result) {                                                            \
            fprintf(stderr, "line %d: %s: error %d\n", __LINE__, #call, result); \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

static void launch(void *function, void *stream, uint64_t words, uint32_t value)
{
    uint32_t count = WORDS;
    void *parameters[] = {&words, &value, &count};
    CHECK(cuLaunchKernel(function, 1, 1, 1, WORDS, 1, 1, 0, stream, parameters, NULL));
}

static void *captured(void *stream, void *const *functions, uint64_t words, uint32_t value)
{
    void *graph;
    CHECK(cuStreamBeginCapture_v2(stream, 1));
    launch(functions[0], stream, words, value);
    launch(functions[1], stream, words, 3);
    launch(functions[0], stream, words, value + 1);
    CHECK(cuStreamEndCapture(stream, &graph));
    return graph;
}

struct graphs {
    void *graph, *other, *executable, *second;
};

static struct graphs replayed(void *stream, void *const *functions, uint64_t words)
{
    struct graphs made = {captured(stream, functions, words, 5), captured(stream, functions, words, 9), NULL, NULL};
    void *clone;
    int update[6];
    CHECK(cuGraphInstantiateWithFlags(&made.executable, made.graph, 0));
    CHECK(cuGraphClone(&clone, made.other));
    CHECK(cuGraphInstantiateWithFlags(&made.second, clone, 0));
    CHECK(cuGraphDestroy(clone));
    for (int i = 0; i < REPLAYS; i++) {
        if (i == REPLAYS / 2)
            CHECK(cuGraphExecUpdate_v2(made.executable, made.other, update));
        CHECK(cuGraphLaunch(i % 3 ? made.executable : made.second, stream));
        launch(functions[1], stream, words, 2);
    }
    CHECK(cuStreamSynchronize(stream));
    return made;
}

static void destroy(const struct graphs *graphs)
{
    CHECK(cuGraphDestroy(graphs->graph));
    CHECK(cuGraphExecDestroy(graphs->second));
    CHECK(cuGraphExecDestroy(graphs->executable));
    CHECK(cuGraphDestroy(graphs->other));
}

/* Every other turn the kernels go before the graphs that have them; the last graphs go with their context. */
static void one_turn(int turn, void *stream, uint64_t words)
{
    void *owner, *functions[2], *kernel;
    if (turn % 2) {
        CHECK(cuModuleLoadData(&owner, ptx));
        CHECK(cuModuleGetFunction(&functions[0], owner, "shift"));
        CHECK(cuModuleGetFunction(&functions[1], owner, "scale"));
    } else {
        CHECK(cuLibraryLoadData(&owner, ptx, NULL, NULL, 0, NULL, NULL, 0));
        CHECK(cuLibraryGetKernel(&kernel, owner, "shift"));
        CHECK(cuKernelGetFunction(&functions[0], kernel));
        CHECK(cuLibraryGetKernel(&functions[1], owner, "scale"));
    }
    const struct graphs graphs = replayed(stream, functions, words);
    if (turn / 2 % 2 && turn + 1 < n_turns)
        destroy(&graphs);
    CHECK(turn % 2 ? cuModuleUnload(owner) : cuLibraryUnload(owner));
    if (!(turn / 2 % 2) && turn + 1 < n_turns)
        destroy(&graphs);
}

static void *work(void *number)
{
    const intptr_t here = (intptr_t)number;
    uint32_t values[WORDS];
    uint64_t words;
    void *stream;
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuMemAlloc_v2(&words, sizeof values));
    CHECK(cuMemsetD8_v2(words, 0, sizeof values));
    for (int turn = 0; turn < n_turns; turn++)
        one_turn(turn, stream, words);
    CHECK(cuMemcpyDtoH_v2(values, words, sizeof values));
    sums[here] = 0;
    for (int i = 0; i < WORDS; i++)
        sums[here] = sums[here] * 31 + values[i];
    CHECK(cuMemFree_v2(words));
    CHECK(cuStreamDestroy_v2(stream));
    return NULL;
}

static char *read_text(const char *path)
{
    char *text = calloc(1, 1 << 16);
    FILE *file = fopen(path, "r");
    if (!file || !text || !fread(text, 1, (1 << 16) - 1, file))
        exit(2);
    fclose(file);
    return text;
}

static int probed_replays(void)
{
    glob_t logs;
    char pattern[4096], line[4096];
    int replays = 0;
    snprintf(pattern, sizeof pattern, "%s/*_%d/event.log", getenv("TUI_PROBE_TRACE_ROOT"), getpid());
    if (glob(pattern, 0, NULL, &logs))
        return 0;
    FILE *log = fopen(logs.gl_pathv[0], "r");
    while (log && fgets(line, sizeof line, log))
        replays += !strncmp(line, "[graph] ", 8) && strstr(line, " replay ");
    if (log)
        fclose(log);
    globfree(&logs);
    return replays;
}

static void all_threads(void)
{
    pthread_t threads[MOST_THREADS];
    for (intptr_t i = 0; i < n_threads; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
}

int main(int count, char **arguments)
{
    const char *until = getenv("GRAPHS_UNTIL");
    ptx = read_text(count > 1 ? arguments[1] : "");
    if (count > 3 && (n_threads = atoi(arguments[2])) <= MOST_THREADS)
        n_turns = atoi(arguments[3]);
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    do
        all_threads();
    while (until && probed_replays() < atoi(until));
    CHECK(cuCtxDestroy_v2(context));
    for (int i = 0; i < n_threads; i++)
        printf("%08x\n", sums[i]);
    return 0;
}
