#include "timers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "drain_wake.h"
#include "empty_pair.h"
#include "event_log.h"
#include "graph_times.h"
#include "kernel.h"
#include "log_file.h"
#include "packed_log.h"
#include "real.h"
#include "schedule.h"
#include "signals.h"
#include "streams.h"

/* A launch must not search: it looks at TRIED timers, then makes one more. Beyond TIMERS a program is so far ahead of its
 * device that further samples would report the same queue. */
enum { TIMERS = 512, TRIED = 4 };

/* TAKEN: a launch is under way. PENDING: its time is waited for. */
enum timer_state { FREE, TAKEN, PENDING };

struct timer {
    _Atomic(enum timer_state) state;
    struct event_pair events;
    struct timed_launch launch;
    bool started, stopped, probed;
    bool host;       /* the start was over before the call that launches returned */
    uint64_t call_began, call_ns; /* when that call began, and how long it took */
    uint64_t launched; /* when timer_give was called, behind the launch */
};

/* The timers of one context. They are never freed: a launching thread may be among them at any time. */
struct timers {
    struct timers *next;
    _Atomic(CUcontext) context; /* NULL while it may be about to go, and once it is gone */
    CUcontext left;             /* which one that is; NULL: another context may have them. Guarded by `reading` */
    struct empty_pair empty;
    atomic_uint hint; /* where a free one is looked for first: those before it are the likeliest to be waited for */
    atomic_uint made; /* those that were ever taken; more are made where these are busy */
    struct timer timers[TIMERS];
};

static _Atomic(struct timers *) all;
static atomic_int pending;
/* Held while events are read, so that no context goes meanwhile; launching threads take it once per context. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

static struct timers *find(CUcontext context)
{
    struct timers *timers = atomic_load_explicit(&all, memory_order_acquire);
    while (timers && atomic_load_explicit(&timers->context, memory_order_acquire) != context)
        timers = timers->next;
    return timers;
}

/* True if no context and no launch has any of them. */
static bool are_unused(const struct timers *timers)
{
    if (atomic_load(&timers->context) || timers->left)
        return false;
    for (unsigned int i = 0; i < atomic_load(&timers->made); i++)
        if (atomic_load(&timers->timers[i].state) != FREE)
            return false;
    return true;
}

/* Timers of a context that is gone, or new ones. Their handle is set last: a thread that finds them by it finds them
 * complete. */
static struct timers *adopt(CUcontext context)
{
    struct timers *timers = atomic_load(&all);
    while (timers && !are_unused(timers))
        timers = timers->next;
    if (timers) {
        for (unsigned int i = 0; i < atomic_load(&timers->made); i++)
            timers->timers[i].events = (struct event_pair){0};
        timers->empty = (struct empty_pair){0};
    } else {
        if (!(timers = calloc(1, sizeof *timers)))
            return NULL;
        timers->next = atomic_load(&all);
        atomic_store(&all, timers);
    }
    atomic_store(&timers->context, context);
    return timers;
}

static struct timers *of_current_context(void)
{
    CUcontext context = NULL;
    if (REAL_OR_NOT_FOUND(cuCtxGetCurrent, &context) != CUDA_SUCCESS || !context)
        return NULL;
    struct timers *timers = find(context);
    if (timers)
        return timers;
    signals_lock(&reading);
    if (!(timers = find(context)) && (timers = adopt(context)))
        empty_pair_measure(&timers->empty);
    signals_unlock(&reading);
    return timers;
}

static bool claim(struct timer *timer)
{
    enum timer_state now = FREE;
    return atomic_compare_exchange_strong(&timer->state, &now, TAKEN);
}

/* A free one among a few of those made; else one more. */
static struct timer *find_free(struct timers *timers)
{
    unsigned int made = atomic_load(&timers->made);
    for (unsigned int i = 0; i < TRIED && i < made; i++) {
        struct timer *timer = &timers->timers[atomic_fetch_add(&timers->hint, 1) % made];
        if (claim(timer))
            return timer;
    }
    if (made == TIMERS || !atomic_compare_exchange_strong(&timers->made, &made, made + 1) ||
        !claim(&timers->timers[made]))
        return NULL;
    return &timers->timers[made];
}

struct timer *timers_take(void)
{
    struct timers *timers = of_current_context();
    struct timer *timer = timers ? find_free(timers) : NULL;
    if (!timer)
        return NULL;
    timer->started = timer->stopped = false;
    if (event_pair_make(&timer->events))
        return timer;
    atomic_store(&timer->state, FREE);
    return NULL;
}

void timer_start(struct timer *timer, CUstream stream)
{
    timer->started = REAL_OR_NOT_FOUND(cuEventRecord, timer->events.start, stream) == CUDA_SUCCESS;
    timer->call_began = clock_now();
}

void timer_stop(struct timer *timer, CUstream stream, bool probed, CUresult result)
{
    if (!timer->started || result != CUDA_SUCCESS)
        return;
    timer->call_ns = clock_now() - timer->call_began;
    timer->probed = probed;
    int mode = capture_mode_relax(); /* asking would end a capture that has begun elsewhere */
    timer->host = REAL_OR_NOT_FOUND(cuEventQuery, timer->events.start) == CUDA_SUCCESS;
    capture_mode_restore(mode);
    timer->stopped = REAL_OR_NOT_FOUND(cuEventRecord, timer->events.end, stream) == CUDA_SUCCESS;
}

void timer_give(struct timer *timer, const struct timed_launch *launch)
{
    if (!timer)
        return;
    if (!timer->stopped) {
        atomic_store(&timer->state, FREE);
        return;
    }
    timer->launch = *launch;
    timer->launched = clock_now();
    if (launch->graph)
        graph_times_use(launch->graph);
    atomic_fetch_add(&pending, 1);
    atomic_store(&timer->state, PENDING);
    atomic_thread_fence(memory_order_seq_cst); /* a thread that is about to rest sees it, or we see that it rests */
    drain_expect();
}

static void settle(struct timer *timer)
{
    graph_times_release(timer->launch.graph);
    atomic_store(&timer->state, FREE);
    atomic_fetch_sub(&pending, 1);
}

/* The time of the call that launched is logged in any case: a replay is one call for many kernels. */
static void log_replay_time(const struct timer *timer, uint64_t nanoseconds)
{
    const struct timed_launch *replay = &timer->launch;
    event_log("[time] graph %u replay %llu %s ns %llu for %llu call %llu%s\n", replay->graph->id,
              (unsigned long long)replay->number, timer->probed ? "probed" : "original",
              (unsigned long long)nanoseconds, (unsigned long long)replay->weight, (unsigned long long)timer->call_ns,
              timer->host ? " idle" : "");
}

/* A recorded launch is logged in any case; of others, up to 1024 of one shape, no more is written than there
 * is room for. */
static void log_time(const struct timer *timer, uint64_t nanoseconds)
{
    const struct timed_launch *launch = &timer->launch;
    if (!timer->probed && !control_log_is_open()) {
        event_log_drop("[time]");
        return;
    }
    if (launch->graph) {
        log_replay_time(timer, nanoseconds);
        return;
    }
    const char *kind = timer->probed ? "probed" : "original";
    const unsigned long long number = launch->number, weight = launch->weight, took = nanoseconds;
    char host[32] = "";
    if (timer->host)
        snprintf(host, sizeof host, " host %llu", (unsigned long long)timer->call_ns);
    log_file_lock();
    packed_log_group(launch->group);
    log_file_unlock();
    event_log("[time] launch %llu kernel %u key %u %s ns %llu for %llu%s\n", number, launch->group->kernel->index,
              launch->group->id, kind, took, weight, host);
}

/* The recent time of launches of this shape: it decides how many of them are timed. */
static void update_typical_time(const struct timer *timer, uint64_t nanoseconds)
{
    const uint64_t host = timer->host ? timer->call_ns : 0, took = nanoseconds > host ? nanoseconds - host : 0;
    struct timed *timed = timer->launch.graph ? &timer->launch.graph->timed : &timer->launch.group->timed;
    struct timed_kind *kind = &timed->of[timer->probed];
    const uint64_t before = atomic_load_explicit(&kind->typical, memory_order_relaxed);
    atomic_store_explicit(&kind->typical, before ? (3 * before + took) / 4 : took, memory_order_relaxed);
}

/* The time between two events, without what a pair shows besides. False if the driver does not say. */
static bool time_between(const struct timers *timers, const struct event_pair *events, uint64_t *took)
{
    float milliseconds;
    if (!event_pair_elapsed(events, &milliseconds))
        return false;
    const double nanoseconds = (double)milliseconds * 1e6 - timers->empty.nanoseconds;
    *took = nanoseconds > 0 ? (uint64_t)(nanoseconds + 0.5) : 0;
    return true;
}

/* Logs the time if it is known. */
static void read_timer(struct timers *timers, struct timer *timer)
{
    uint64_t took;
    CUresult done = REAL_OR_NOT_FOUND(cuEventQuery, timer->events.end);
    if (done == CUDA_ERROR_NOT_READY || (done == CUDA_SUCCESS && !empty_pair_known(&timers->empty)))
        return;
    if (done == CUDA_SUCCESS && time_between(timers, &timer->events, &took)) {
        update_typical_time(timer, took);
        log_time(timer, took);
    }
    settle(timer);
}

static void log_node_time(const struct timers *timers, const struct timed_node *node)
{
    const struct timer timer = {.events = node->events, .launch = node->launch, .probed = node->probed};
    uint64_t took;
    if (time_between(timers, &node->events, &took))
        log_time(&timer, took);
}

bool timers_tell(const struct timed_node *nodes, size_t n)
{
    struct timers *timers = of_current_context();
    pthread_mutex_lock(&reading);
    const bool known = !timers || empty_pair_known(&timers->empty);
    for (size_t i = 0; timers && known && i < n; i++)
        log_node_time(timers, &nodes[i]);
    pthread_mutex_unlock(&reading);
    return known;
}

void timers_expect(int more)
{
    atomic_fetch_add(&pending, more);
}

static bool is_pending(const struct timer *timer)
{
    return atomic_load_explicit(&timer->state, memory_order_acquire) == PENDING;
}

static void drop_pending(struct timers *timers)
{
    for (unsigned int i = 0; i < atomic_load(&timers->made); i++)
        if (is_pending(&timers->timers[i]))
            settle(&timers->timers[i]);
}

static void read_context(struct timers *timers, CUcontext context)
{
    bool entered = false;
    for (unsigned int i = 0; i < atomic_load(&timers->made); i++) {
        struct timer *timer = &timers->timers[i];
        if (!is_pending(timer))
            continue;
        if (!entered && REAL_OR_NOT_FOUND(cuCtxSetCurrent, context) != CUDA_SUCCESS)
            return;
        entered = true;
        read_timer(timers, timer);
    }
}

void timers_collect(void)
{
    if (!timers_pending())
        return;
    pthread_mutex_lock(&reading);
    for (struct timers *timers = atomic_load(&all); timers; timers = timers->next) {
        CUcontext context = atomic_load(&timers->context);
        if (context)
            read_context(timers, context);
        else
            drop_pending(timers); /* of launches that were under way when it left */
    }
    pthread_mutex_unlock(&reading);
}

/* The start of a launch behind others is not over, either. */
static bool is_running(const struct timer *timer)
{
    return REAL_OR_NOT_FOUND(cuEventQuery, timer->events.start) == CUDA_SUCCESS &&
           REAL_OR_NOT_FOUND(cuEventQuery, timer->events.end) == CUDA_ERROR_NOT_READY;
}

static size_t running_in(struct timers *timers, CUcontext context, struct timed_running *running, size_t most,
                         uint64_t before)
{
    size_t n = 0;
    bool entered = false;
    for (unsigned int i = 0; i < atomic_load(&timers->made) && n < most; i++) {
        const struct timer *timer = &timers->timers[i];
        if (!is_pending(timer) || timer->launch.graph || timer->launched >= before)
            continue;
        if (!entered && REAL_OR_NOT_FOUND(cuCtxSetCurrent, context) != CUDA_SUCCESS)
            return n;
        entered = true;
        if (is_running(timer))
            running[n++] = (struct timed_running){timer->launch.group->kernel, timer->launch.number, timer->launched};
    }
    return n;
}

size_t timers_running(struct timed_running *running, size_t most, uint64_t before)
{
    size_t n = 0;
    if (!timers_pending())
        return 0;
    pthread_mutex_lock(&reading);
    for (struct timers *timers = atomic_load(&all); timers; timers = timers->next) {
        CUcontext context = atomic_load(&timers->context);
        if (context)
            n += running_in(timers, context, running + n, most - n, before);
    }
    pthread_mutex_unlock(&reading);
    return n;
}

void timers_free_memory(void)
{
    pthread_mutex_lock(&reading);
    for (struct timers *timers = atomic_load(&all); timers; timers = timers->next) {
        CUcontext context = atomic_load(&timers->context);
        if (context && timers->empty.work && REAL_OR_NOT_FOUND(cuCtxSetCurrent, context) == CUDA_SUCCESS)
            empty_pair_free(&timers->empty);
    }
    pthread_mutex_unlock(&reading);
}

bool timers_pending(void)
{
    return atomic_load(&pending) > 0;
}

bool timers_pending_in(CUcontext context)
{
    const struct timers *timers = find(context);
    bool any = false;
    for (unsigned int i = 0; timers && !any && i < atomic_load(&timers->made); i++)
        any = is_pending(&timers->timers[i]);
    return any;
}

void timers_leave(CUcontext context)
{
    pthread_mutex_lock(&reading);
    struct timers *timers = find(context);
    if (timers) {
        timers->left = context;
        atomic_store(&timers->context, NULL);
        drop_pending(timers);
    }
    pthread_mutex_unlock(&reading);
}

void timers_settle(CUcontext context, bool gone)
{
    pthread_mutex_lock(&reading);
    for (struct timers *timers = atomic_load(&all); timers; timers = timers->next) {
        if (timers->left != context)
            continue;
        timers->left = NULL;
        if (!gone)
            atomic_store(&timers->context, context);
    }
    pthread_mutex_unlock(&reading);
}

void timers_reset(void)
{
    pthread_mutex_init(&reading, NULL);
    atomic_store(&all, NULL);
    atomic_store(&pending, 0);
}
