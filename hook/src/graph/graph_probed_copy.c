#include "graph_probed_copy.h"

#include <pthread.h>
#include <stdlib.h>

#include "event_log.h"
#include "graph_clock.h"
#include "real.h"
#include "reasons.h"
#include "settings.h"
#include "signals.h"
#include "streams.h"
#include "threads.h"
#include "timers.h"

enum { MOST_PROBED_COPIES = 8 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct executable *with_probed_copy[MOST_PROBED_COPIES];
static uint64_t uses;
static struct executable *wanted[MOST_PROBED_COPIES]; /* that a hook thread makes probed copies of */
static size_t n_wanted;
static bool running; /* there is the thread */
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;

void probed_copies_lock(void)
{
    signals_lock(&mutex);
}

void probed_copies_unlock(void)
{
    signals_unlock(&mutex);
}

bool probed_copies_lock_if_free(void)
{
    signals_hold();
    if (pthread_mutex_trylock(&mutex) == 0)
        return true;
    signals_release();
    return false;
}

bool probed_copies_try_lock(void)
{
    if (settings.scheduled && !settings.patient)
        return probed_copies_lock_if_free();
    probed_copies_lock();
    return true;
}

static bool can_be_twice(enum graph_node_type type)
{
    return type <= CU_GRAPH_NODE_EXT_SEMAS_WAIT || type == CU_GRAPH_NODE_BATCH_MEM_OP;
}

/* The reason why a graph with these nodes and flags cannot be there twice; NULL: it can. */
static const struct reason *refused(const struct graph *graph, unsigned long long flags)
{
    if (settings.benchmark || settings.memusage)
        return reason(GRAPH_LEFT_ALONE);
    if (!settings.graphs)
        return reason(GRAPH_UNASKED);
    if (!graph)
        return reason(GRAPH_UNREADABLE);
    if (flags & CU_GRAPH_INSTANTIATE_DEVICE_LAUNCH)
        return reason(GRAPH_DEVICE_LAUNCH);
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!can_be_twice(graph->nodes[i].type))
            return reason_with(GRAPH_NODE_ONCE, graph_type_name(graph->nodes[i].type));
    return graph->n_kernels ? NULL : reason(GRAPH_NO_KERNEL);
}

static const struct reason *clone_graph(struct executable *executable, CUgraph graph)
{
    const CUresult result = REAL_OR_NOT_FOUND(cuGraphClone, &executable->clone, graph);
    if (result != CUDA_SUCCESS) {
        executable->clone = NULL;
        return reason_with(GRAPH_NOT_CLONED, reason_error_name(result));
    }
    return graph_match(executable->graph, executable->clone) ? NULL : reason(GRAPH_UNREADABLE);
}

static void drop_clone(struct executable *executable)
{
    if (executable->clone)
        REAL_OR_NOT_FOUND(cuGraphDestroy, executable->clone);
    executable->clone = NULL;
    graph_clock_drop(executable);
}

/* A clone that events could not be put into is made again without them. */
static const struct reason *clone_timed(struct executable *executable, CUgraph graph)
{
    const struct reason *reason = clone_graph(executable, graph);
    struct graph_clock *clock;
    if (reason)
        return reason;
    if (!graph_clock_make(executable, &clock)) {
        drop_clone(executable);
        return clone_graph(executable, graph);
    }
    probed_copies_lock(); /* the draining thread looks at every executable */
    executable->clock = clock;
    probed_copies_unlock();
    return NULL;
}

void probed_copy_clone(struct executable *executable, CUgraph graph)
{
    executable->refused = refused(executable->graph, executable->flags);
    if (!executable->refused)
        executable->refused = clone_timed(executable, graph);
    if (executable->refused)
        probed_copy_drop(executable, executable->refused);
}

/* The lock is held. */
static void destroy(struct executable *executable)
{
    for (int i = 0; i < MOST_PROBED_COPIES; i++)
        if (with_probed_copy[i] == executable)
            with_probed_copy[i] = NULL;
    for (size_t i = 0; i < n_wanted; i++)
        if (wanted[i] == executable)
            wanted[i--] = wanted[--n_wanted];
    executable->awaited = false;
    if (executable->probed_copy)
        REAL_OR_NOT_FOUND(cuGraphExecDestroy, executable->probed_copy);
    executable->probed_copy = NULL;
}

static void log_untwinned(const struct executable *executable)
{
    event_log_often("[graph] %u untwinned reason %s\n", executable->id, executable->refused->written);
}

/* The lock is held. */
static void drop(struct executable *executable, const struct reason *reason)
{
    destroy(executable);
    drop_clone(executable);
    executable->refused = reason;
    if (reason)
        log_untwinned(executable);
}

void probed_copy_drop(struct executable *executable, const struct reason *reason)
{
    int mode = capture_mode_relax();
    probed_copies_lock();
    drop(executable, reason);
    probed_copies_unlock();
    capture_mode_restore(mode);
}

/* A place for one more probed copy: one that is free, or that of the probed copy that has not been used for longest. */
static int make_room(void)
{
    int oldest = 0;
    for (int i = 0; i < MOST_PROBED_COPIES; i++) {
        if (!with_probed_copy[i])
            return i;
        if (with_probed_copy[i]->used < with_probed_copy[oldest]->used)
            oldest = i;
    }
    destroy(with_probed_copy[oldest]);
    return oldest;
}

static CUresult set_disabled(const struct executable *executable, const struct graph_node *node)
{
    return node->disabled ? REAL_OR_NOT_FOUND(cuGraphNodeSetEnabled, executable->probed_copy, node->probed_copy, 0)
                          : CUDA_SUCCESS;
}

/* Everything in a new executable is as it is in the clone, but for what the program has disabled in its own. */
static CUresult instantiate(struct executable *executable)
{
    CUgraphExec probed_copy = NULL;
    const unsigned long long flags = executable->flags & ~CU_GRAPH_INSTANTIATE_UPLOAD;
    CUresult result = REAL_OR_NOT_FOUND(cuGraphInstantiateWithFlags, &probed_copy, executable->clone, flags);
    if (result != CUDA_SUCCESS)
        return result;
    executable->probed_copy = probed_copy;
    for (size_t i = 0; i < executable->graph->n_nodes && result == CUDA_SUCCESS; i++) {
        executable->graph->nodes[i].stale = false;
        result = set_disabled(executable, &executable->graph->nodes[i]);
    }
    return result;
}

static const struct reason *make(struct executable *executable)
{
    const int place = make_room();
    const CUresult result = instantiate(executable);
    if (result != CUDA_SUCCESS) {
        destroy(executable);
        executable->refused = reason_with(GRAPH_NOT_TWINNED, reason_error_name(result));
        log_untwinned(executable);
        return executable->refused;
    }
    with_probed_copy[place] = executable;
    return NULL;
}

/* With the lock held all along, so that no executable goes while its probed copy is made. */
static void *make_probed_copies(void *unused)
{
    (void)unused;
    capture_mode_relax();
    pthread_mutex_lock(&mutex);
    for (;;) {
        while (!n_wanted)
            pthread_cond_wait(&arrived, &mutex);
        struct executable *executable = wanted[--n_wanted];
        executable->awaited = false;
        if (REAL_OR_NOT_FOUND(cuCtxSetCurrent, executable->context) == CUDA_SUCCESS)
            make(executable);
    }
    return NULL;
}

/* The lock is held. False: the launching thread makes it. */
static bool is_left_to_thread(struct executable *executable)
{
    if (!settings.scheduled || settings.patient || executable->updated)
        return false;
    if (executable->awaited)
        return true;
    if (n_wanted == MOST_PROBED_COPIES || (!running && !(running = thread_start(make_probed_copies))))
        return false;
    wanted[n_wanted++] = executable;
    executable->awaited = true;
    pthread_cond_signal(&arrived);
    return true;
}

const struct reason *probed_copy_ready(struct executable *executable)
{
    executable->used = ++uses;
    if (executable->probed_copy)
        return NULL;
    return is_left_to_thread(executable) ? reason(GRAPH_BEING_TWINNED) : make(executable);
}

bool probed_copies_give_back(void)
{
    bool any = false;
    int mode = capture_mode_relax();
    probed_copies_lock();
    for (int i = 0; i < MOST_PROBED_COPIES; i++)
        if (with_probed_copy[i]) {
            event_log_often("[graph] %u twin given back\n", with_probed_copy[i]->id);
            destroy(with_probed_copy[i]);
            any = true;
        }
    probed_copies_unlock();
    capture_mode_restore(mode);
    return any;
}

/* A thread that has the lock may wait for this one. */
static void read_times(struct executable *executable, const void *unused)
{
    (void)unused;
    if (!probed_copies_lock_if_free())
        return;
    graph_clock_read(executable);
    probed_copies_unlock();
}

void probed_copies_read_times(void)
{
    if (settings.node_times && timers_pending())
        executables_each(read_times, NULL);
}

struct leaving {
    CUcontext context;
    bool certain;
};

/* Replays of the program's own that come behind the last one of the probed copy wait for its event: they must not
 * without it. */
static void leave(struct executable *executable, const void *argument)
{
    const struct leaving *leaving = argument;
    if (executable->context != leaving->context)
        return;
    probed_copies_lock();
    destroy(executable);
    if (leaving->certain && executable->clone)
        drop(executable, reason(GRAPH_CONTEXT_GONE));
    if (leaving->certain && executable->event) {
        REAL_OR_NOT_FOUND(cuEventDestroy_v2, executable->event);
        executable->event = NULL;
        executable->launched = executable->probed_copy_last = false;
    }
    probed_copies_unlock();
}

void probed_copies_leave(CUcontext context, bool certain)
{
    const struct leaving leaving = {context, certain};
    CUcontext before = NULL;
    if (REAL_OR_NOT_FOUND(cuCtxGetCurrent, &before) != CUDA_SUCCESS ||
        REAL_OR_NOT_FOUND(cuCtxSetCurrent, context) != CUDA_SUCCESS)
        return; /* what is broken is destroyed as it is */
    int mode = capture_mode_relax();
    executables_each(leave, &leaving);
    capture_mode_restore(mode);
    REAL_OR_NOT_FOUND(cuCtxSetCurrent, before);
}

/* The driver is not asked to destroy what may be gone with the context. */
static void forget(struct executable *executable, const void *context)
{
    if (executable->context != context)
        return;
    probed_copies_lock();
    executable->probed_copy = NULL;
    executable->event = NULL;
    if (executable->clone) {
        executable->clone = NULL;
        graph_clock_forget(executable);
        drop(executable, reason(GRAPH_CONTEXT_GONE));
    }
    executable->context = NULL;
    executable->launched = executable->probed_copy_last = false;
    probed_copies_unlock();
}

void probed_copies_forget(CUcontext context)
{
    executables_each(forget, context);
}

void probed_copies_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    pthread_cond_init(&arrived, NULL);
    n_wanted = 0;
    running = false;
    for (int i = 0; i < MOST_PROBED_COPIES; i++)
        with_probed_copy[i] = NULL;
}
