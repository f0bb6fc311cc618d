/* Threads with contexts of their own that come and go, threads that share the primary context, and one that retains and
 * releases it all the time; each launches and replays graphs. For the sanitizers to watch. Prints how many launches there
 * were and how many of them ran. */
#include "simulated.h"

enum { THREADS = 3, TURNS = 3, LAUNCHES = 6, REPLAYS = 4, RELEASES = 20 };

static unsigned ran[2 * THREADS];

/* In the current context. Returns how many of the launches ran. */
static unsigned work(void)
{
    void *module, *executable, *stream;
    void *function = loaded(&module);
    uint64_t word = new_word();
    void *graph = captured(function, word);
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    CHECK(cuGraphDestroy(graph));
    for (int i = 0; i < LAUNCHES; i++)
        CHECK(launch(function, i % 2 ? stream : NULL, word));
    for (int i = 0; i < REPLAYS; i++)
        CHECK(cuGraphLaunch(executable, stream));
    CHECK(cuCtxSynchronize());
    const unsigned n = value_of(word);
    CHECK(cuGraphExecDestroy(executable));
    CHECK(cuStreamDestroy_v2(stream));
    CHECK(cuMemFree_v2(word));
    CHECK(cuModuleUnload(module));
    return n;
}

static void *use_own_contexts(void *n)
{
    for (int i = 0; i < TURNS; i++) {
        void *context;
        CHECK(cuCtxCreate_v2(&context, 0, 0));
        *(unsigned *)n += work();
        if (i % 2)
            CHECK(cuCtxSetCurrent(NULL));
        CHECK(cuCtxDestroy_v2(context));
    }
    return NULL;
}

static void *use_primary_context(void *n)
{
    for (int i = 0; i < TURNS; i++) {
        void *context;
        CHECK(cuDevicePrimaryCtxRetain(&context, 0));
        CHECK(cuCtxSetCurrent(context));
        *(unsigned *)n += work();
        CHECK(cuCtxSetCurrent(NULL));
        CHECK(cuDevicePrimaryCtxRelease_v2(0));
    }
    return NULL;
}

static void *release_often(void *unused)
{
    for (int i = 0; i < RELEASES; i++) {
        void *context;
        CHECK(cuDevicePrimaryCtxRetain(&context, 0));
        CHECK(cuDevicePrimaryCtxRelease_v2(0));
    }
    return unused;
}

int main(void)
{
    pthread_t threads[2 * THREADS + 1];
    unsigned sum = 0;
    CHECK(cuInit(0));
    for (int i = 0; i < 2 * THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, i % 2 ? use_primary_context : use_own_contexts, &ran[i]));
    CHECK(pthread_create(&threads[2 * THREADS], NULL, release_often, NULL));
    for (int i = 0; i <= 2 * THREADS; i++)
        CHECK(pthread_join(threads[i], NULL));
    for (int i = 0; i < 2 * THREADS; i++)
        sum += ran[i];
    printf("%u of %u\n", sum, 2 * THREADS * TURNS * (LAUNCHES + REPLAYS));
    return 0;
}
