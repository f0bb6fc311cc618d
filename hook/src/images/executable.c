#include "executable.h"

#include <pthread.h>
#include <stdlib.h>

#include "handle_table.h"
#include "real.h"
#include "signals.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct handle_table by_handle;
static struct executable **all;
static size_t n_all, capacity;
static atomic_bool any; /* were instantiated so far */
static uint32_t last_id;

struct executable *executables_find(CUgraphExec handle)
{
    return handle_table_get(&by_handle, handle);
}

/* The lock is held. */
static bool has_room(void)
{
    if (n_all < capacity)
        return true;
    const size_t larger = capacity ? 2 * capacity : 16;
    struct executable **moved = realloc(all, larger * sizeof(struct executable *));
    if (!moved)
        return false;
    all = moved;
    capacity = larger;
    return true;
}

static bool list(struct executable *executable)
{
    signals_lock(&mutex);
    executable->id = last_id;
    bool done = has_room() && handle_table_put(&by_handle, executable->handle, executable);
    if (done) {
        all[n_all++] = executable;
        atomic_store_explicit(&any, true, memory_order_relaxed);
        last_id++;
    }
    signals_unlock(&mutex);
    return done;
}

void executable_read(struct executable *executable, CUgraph graph)
{
    graph_free(executable->graph);
    executable->graph = graph_read(graph);
    executable->window = 0;
}

static void release(struct executable *executable)
{
    graph_free(executable->graph);
    graph_times_release(executable->times);
    free(executable);
}

struct executable *executables_add(CUgraphExec handle, CUgraph graph, unsigned long long flags)
{
    struct executable *executable = calloc(1, sizeof *executable);
    if (!executable)
        return NULL;
    executable->handle = handle;
    executable->flags = flags;
    if (REAL_OR_NOT_FOUND(cuCtxGetCurrent, &executable->context) != CUDA_SUCCESS)
        executable->context = NULL;
    if (!list(executable)) {
        free(executable);
        return NULL;
    }
    if (!(executable->times = graph_times_make(executable->id))) {
        executables_remove(executable);
        return NULL;
    }
    executable_read(executable, graph);
    return executable;
}

static bool is_this(const void *value, const void *wanted)
{
    return value == wanted;
}

void executables_remove(struct executable *executable)
{
    signals_lock(&mutex);
    handle_table_remove(&by_handle, is_this, executable);
    for (size_t i = 0; i < n_all; i++)
        if (all[i] == executable)
            all[i--] = all[--n_all];
    signals_unlock(&mutex);
    release(executable);
}

void executables_each(void (*visit)(struct executable *executable, const void *argument), const void *argument)
{
    signals_lock(&mutex);
    for (size_t i = 0; i < n_all; i++)
        visit(all[i], argument);
    signals_unlock(&mutex);
}

static void leave_stream(struct executable *executable, const void *stream)
{
    CUstream gone = (CUstream)(uintptr_t)stream;
    atomic_compare_exchange_strong(&executable->stream, &gone, STREAM_GONE);
}

void executables_leave_stream(CUstream stream)
{
    if (atomic_load_explicit(&any, memory_order_relaxed))
        executables_each(leave_stream, stream);
}

void executables_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    n_all = 0;
    atomic_store(&any, false);
    last_id = 0;
}
