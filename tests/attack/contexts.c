/* Contexts that come and go, on the simulated GPU. The argument is what to do. */
#include <stdatomic.h>

#include "simulated.h"

enum { ROUNDS = 10, RELEASES = 12, LAUNCHES = 3, THREADS = 4, THREAD_LAUNCHES = 60 };

static void *retained(void)
{
    void *context;
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    return context;
}

/* Answers of the driver to launches of functions whose context is gone, and of a kernel that no context owns. */
static void launch_stale(void)
{
    void *context = retained(), *module, *library, *kernel, *in_library;
    CHECK(cuCtxSetCurrent(context));
    void *function = loaded(&module);
    CHECK(cuLibraryLoadData(&library, ADD, NULL, NULL, 0, NULL, NULL, 0));
    CHECK(cuLibraryGetKernel(&kernel, library, "add"));
    CHECK(cuKernelGetFunction(&in_library, kernel));
    uint64_t word = new_word();
    CHECK(launch(function, NULL, word));
    CHECK(launch(kernel, NULL, word));
    CHECK(cuDevicePrimaryCtxReset_v2(0));
    word = new_word();
    printf("function %d ", launch(function, NULL, word));
    printf("kernel %d ", launch(kernel, NULL, word));
    printf("memory %u\n", value_of(word));
}

static void launch_in_the_next_context(void)
{
    void *first, *second, *module;
    CHECK(cuCtxCreate_v2(&first, 0, 0));
    void *function = loaded(&module);
    CHECK(launch(function, NULL, new_word()));
    CHECK(cuCtxDestroy_v2(first));
    CHECK(cuCtxCreate_v2(&second, 0, 0));
    uint64_t word = new_word();
    printf("same handle %d function %d ", first == second, launch(function, NULL, word));
    printf("memory %u\n", value_of(word));
    function = loaded(&module);
    CHECK(launch(function, NULL, word));
    printf("again %u\n", value_of(word));
}

static void launch_in_several_destroyed(void)
{
    void *functions[RELEASES], *contexts[RELEASES], *living, *module;
    for (int i = 0; i < RELEASES; i++) {
        CHECK(cuCtxCreate_v2(&contexts[i], 0, 0));
        functions[i] = loaded(&module);
    }
    for (int i = 0; i < RELEASES; i++)
        CHECK(cuCtxDestroy_v2(contexts[i]));
    CHECK(cuCtxCreate_v2(&living, 0, 0));
    const uint64_t word = new_word();
    for (int i = 0; i < RELEASES; i++)
        printf("%d ", launch(functions[i], NULL, word));
    puts("");
}

static size_t used_memory(void)
{
    size_t unused, total;
    CHECK(cuMemGetInfo_v2(&unused, &total));
    return total - unused;
}

static void release_in_a_row(void *function, void *executable, uint64_t word, int releases)
{
    for (int i = 0; i < releases; i++) {
        for (int k = 0; k < LAUNCHES; k++) {
            CHECK(launch(function, NULL, word));
            CHECK(cuGraphLaunch(executable, NULL));
        }
        retained();
        CHECK(cuDevicePrimaryCtxRelease_v2(0));
    }
}

/* A library retains and releases the primary context of a device whose program has a context of its own. What each
 * release left behind would be there after every round; on a busy machine records may take another buffer in one. */
static void release_often(void)
{
    void *context, *module, *executable;
    size_t used = 0;
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    void *function = loaded(&module);
    uint64_t word = new_word();
    void *graph = captured(function, word);
    CHECK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    for (int i = 0; i < ROUNDS; i++) {
        release_in_a_row(function, executable, word, 1);
        const size_t before = used_memory();
        release_in_a_row(function, executable, word, RELEASES);
        const size_t after = used_memory();
        used = after > before ? after - before : 0;
        if (!used)
            break;
    }
    printf("%zu KiB more\n", used >> 10);
}

static atomic_int n_ended;

static void *launch_in_own_context(void *unused)
{
    void *context, *module;
    (void)unused;
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    void *function = loaded(&module);
    uint64_t word = new_word();
    for (int i = 0; i < THREAD_LAUNCHES; i++)
        CHECK(launch(function, NULL, word));
    if (value_of(word) != THREAD_LAUNCHES)
        printf("%u\n", value_of(word));
    n_ended++;
    return NULL;
}

static void release_beside_threads(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, launch_in_own_context, NULL));
    while (n_ended < THREADS) {
        retained();
        CHECK(cuDevicePrimaryCtxRelease_v2(0));
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL));
}

int main(int n, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } programs[] = {{"stale", launch_stale},
                    {"next", launch_in_the_next_context},
                    {"several", launch_in_several_destroyed},
                    {"releases", release_often},
                    {"threads", release_beside_threads}};
    CHECK(cuInit(0));
    for (size_t i = 0; n > 1 && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(programs[i].name, arguments[1]) == 0)
            programs[i].run();
    return 0;
}
