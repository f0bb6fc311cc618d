#define _GNU_SOURCE
#include "background.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "connection.h"
#include "prepare.h"
#include "real.h"
#include "sampled_form.h"
#include "schedule.h"
#include "settings.h"
#include "signals.h"
#include "threads.h"

/* The time that launches may wait in all: a second, and a twentieth of the time since the start. */
enum { WAIT_NANOSECONDS = 1000000000, WAIT_PART = 20 };

struct job {
    struct job *next; /* the next newer one */
    struct kernel *kernel;
    struct kernel_probe *form; /* whose sampled form is wanted; NULL: the kernel is */
    bool is_late; /* the kernel's late probes are wanted */
    struct launch launch; /* its shape and function; nothing that points into the program */
    CUcontext context;
};

/* The engine assembles as many kernels at a time. More threads wait for late probes, which it prepares whether one waits
 * or not; launches wait for those for a part of the time that they may wait in all. */
enum { MOST_THREADS = 8, LATE_THREADS = 2, LATE_PART = 2 };

/* A guess about kernels that were not timed yet: the least time of a kernel, and what an H100 does where each thread has
 * one access to memory. */
enum { SHORTEST_TIME = 2000, THREADS_PER_NANOSECOND = 256 };

enum { NANOSECONDS_PER_MILLISECOND = 1000000, INTERRUPT_MILLISECONDS = 20 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static struct job *oldest, **newest = &oldest;
static struct job *under_way[MOST_THREADS + LATE_THREADS]; /* of each thread; NULL: it waits for one */
static pthread_t threads[MOST_THREADS + LATE_THREADS];
static unsigned n_threads, n_begun, n_idle, n_queued, n_late; /* n_late: threads that wait for late probes */
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static atomic_uint_fast64_t waited; /* nanoseconds */
static uint64_t waited_late; /* those for late probes */
static bool late_take_long; /* a launch gave up waiting for late probes: no other launch waits for them */

static atomic_bool *awaited(struct kernel *kernel, struct kernel_probe *form)
{
    return form ? &form->sampled_form.awaited : &kernel->awaited;
}

static void let_go(struct job *job)
{
    atomic_store(job->is_late ? &job->kernel->late_awaited : awaited(job->kernel, job->form), false);
    free(job);
}

/* True if late probes of the job's kernel are still to be waited for. */
static bool prepare(struct job *job)
{
    if (REAL_OR_NOT_FOUND(cuCtxSetCurrent, job->context) != CUDA_SUCCESS) {
        if (job->is_late)
            prepare_leave_late(job->kernel);
        return false;
    }
    if (job->form)
        sampled_form_prepare(job->form);
    else if (job->is_late)
        prepare_late(job->kernel, &job->launch);
    else
        return prepare_early(job->kernel, &job->launch);
    return false;
}

/* Nanoseconds of a launch that was not timed: a kernel of more threads is taken to need more. */
static double estimated_time(const struct launch *launch)
{
    double threads = 1;
    for (int i = 0; i < 3; i++)
        threads *= (double)launch->grid[i] * launch->block[i];
    return SHORTEST_TIME + threads / THREADS_PER_NANOSECOND;
}

/* Nanoseconds that launches of the job's shape have taken so far. */
static double gpu_time(const struct job *job)
{
    struct shape_group *group = job->launch.group; /* NULL: of a graph */
    const uint64_t launches = group ? atomic_load_explicit(&group->launches, memory_order_relaxed) : 1;
    const uint64_t typical = group ? atomic_load_explicit(&group->timed.of[0].typical, memory_order_relaxed) : 0;
    return (double)launches * (typical ? (double)typical : estimated_time(&job->launch));
}

static bool comes_before(const struct job *job, const struct job *other)
{
    return job->is_late == other->is_late ? gpu_time(job) > gpu_time(other) : !job->is_late;
}

/* The place of the job to be done next: that of most GPU time so far, the oldest of several, since launches pass until
 * their kernel is prepared. Late probes come last. NULL if there is none. The lock is held. */
static struct job **next_place(void)
{
    struct job **next = &oldest;
    for (struct job **at = &oldest; *at; at = &(*at)->next)
        if (comes_before(*at, *next))
            next = at;
    return *next && !((*next)->is_late && n_late == LATE_THREADS) ? next : NULL;
}

/* Takes the job to be done next. The lock is held. */
static struct job *next_job(void)
{
    struct job **place;
    while (!(place = next_place()))
        pthread_cond_wait(&arrived, &mutex);
    struct job *job = *place;
    *place = job->next;
    if (!*place)
        newest = place;
    n_queued--;
    n_late += job->is_late;
    return job;
}

/* The lock is held. */
static void enqueue(struct job *job)
{
    job->next = NULL;
    *newest = job;
    newest = &job->next;
    n_queued++;
    pthread_cond_signal(&arrived);
}

/* JOB is done, or is to be done again for late probes. The lock is held. */
static void finish(struct job *job, bool has_late_probes)
{
    n_late -= job->is_late;
    if (has_late_probes) {
        atomic_store(&job->kernel->late_awaited, true);
        atomic_store(&job->kernel->awaited, false);
        job->is_late = true;
        enqueue(job);
    } else {
        let_go(job);
    }
    pthread_cond_broadcast(&done);
}

static void *prepare_jobs(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    threads[n_begun] = pthread_self();
    struct job **mine = &under_way[n_begun++];
    for (;;) {
        n_idle++;
        struct job *job = next_job();
        n_idle--;
        *mine = job;
        pthread_mutex_unlock(&mutex);
        const bool has_late_probes = prepare(job);
        pthread_mutex_lock(&mutex);
        *mine = NULL;
        finish(job, has_late_probes);
    }
    return NULL;
}

/* The lock is held. */
static bool is_under_way(bool (*matches)(const struct job *job, const void *wanted), const void *wanted)
{
    for (unsigned i = 0; i < n_begun; i++)
        if (under_way[i] && matches(under_way[i], wanted))
            return true;
    return false;
}

/* Nanoseconds that launches may wait in all. */
static uint64_t allowance(void)
{
    return WAIT_NANOSECONDS + (clock_now() - clock_zero()) / WAIT_PART;
}

static uint64_t rest(uint64_t most, uint64_t so_far)
{
    return so_far < most ? most - so_far : 0;
}

/* Nanoseconds that a launch may still wait. */
static uint64_t patience(void)
{
    return rest(allowance(), atomic_load(&waited));
}

/* Waits until IS_AWAITED is over, MOST nanoseconds at most. The lock is held. */
static void wait_for(const atomic_bool *is_awaited, uint64_t most)
{
    const uint64_t began = clock_now();
    const struct timespec deadline = clock_deadline(most / NANOSECONDS_PER_MILLISECOND);
    while (atomic_load(is_awaited) && clock_now() - began < most &&
           pthread_cond_timedwait(&done, &mutex, &deadline) != ETIMEDOUT)
        ;
}

/* Waits for the late probes of KERNEL for at most MOST nanoseconds. All such waits together have a part of the first
 * second only: kernels that come later must get a first probe, and a program that starts for long has many. The lock is
 * held. */
static void wait_for_late(struct kernel *kernel, uint64_t most)
{
    const uint64_t began = clock_now(), left = rest(WAIT_NANOSECONDS / LATE_PART, waited_late);
    wait_for(&kernel->late_awaited, left < most ? left : most);
    waited_late += clock_now() - began;
    late_take_long = atomic_load(&kernel->late_awaited);
}

/* As many threads as there are processors for this process, but for one that the program keeps; two at least, since
 * they mostly wait for the engine. */
static unsigned most_threads(void)
{
    cpu_set_t processors;
    const int n = sched_getaffinity(0, sizeof processors, &processors) == 0 ? CPU_COUNT(&processors) : 1;
    return n <= 3 ? 2 : n > MOST_THREADS ? MOST_THREADS : (unsigned)n - 1;
}

/* Has waits for DONE end by the clock of deadlines. */
static void init_done(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&done, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* The lock is held. Starts another thread, within bounds, if all have a job. False if there is none. */
static bool has_thread(void)
{
    if (!n_threads)
        init_done();
    if (n_idle <= n_queued && n_threads < most_threads() + n_late && thread_start(prepare_jobs))
        n_threads++;
    return n_threads > 0;
}

/* The lock is held. False if it cannot be done. */
static bool submit(struct kernel *kernel, struct kernel_probe *form, const struct launch *launch)
{
    CUcontext context = NULL;
    if (REAL_OR_NOT_FOUND(cuCtxGetCurrent, &context) != CUDA_SUCCESS || !context)
        return false;
    if (!has_thread())
        return false;
    struct job *job = malloc(sizeof *job);
    if (!job)
        return false;
    *job = (struct job){.kernel = kernel, .form = form, .launch = *launch, .context = context};
    job->launch.form = LAUNCH_KERNEL;
    job->launch.parameters = job->launch.extra = NULL;
    job->launch.config = NULL;
    atomic_store(awaited(kernel, form), true);
    enqueue(job);
    return true;
}

/* Waits, as long as launches still may, for a kernel or a form, and less long for the kernel's late probes. True if it is
 * still awaited: then the time counts here. The lock is held. */
static bool waits_too_long(struct kernel *kernel, struct kernel_probe *form)
{
    const atomic_bool *is_awaited = awaited(kernel, form);
    const uint64_t began = clock_now(), most = patience();
    wait_for(is_awaited, most);
    const uint64_t so_far = clock_now() - began;
    if (atomic_load(is_awaited)) {
        atomic_fetch_add(&waited, so_far);
        return true;
    }
    if (!form && so_far < most && !late_take_long)
        wait_for_late(kernel, most - so_far);
    return false;
}

static bool takes(struct kernel *kernel, struct kernel_probe *form, const struct launch *launch)
{
    const atomic_bool *is_awaited = awaited(kernel, form);
    if (!settings.scheduled || settings.patient)
        return false;
    if (atomic_load(is_awaited) && !patience())
        return true;
    signals_lock(&mutex);
    const bool submitted = atomic_load(is_awaited) || submit(kernel, form, launch);
    const bool takes = submitted && waits_too_long(kernel, form);
    signals_unlock(&mutex);
    return takes;
}

bool background_takes(struct kernel *kernel, const struct launch *launch)
{
    return takes(kernel, NULL, launch);
}

bool background_takes_form(struct kernel_probe *probe, const struct launch *launch)
{
    return takes(probe->kernel, probe, launch);
}

void background_waited(uint64_t nanoseconds)
{
    atomic_fetch_add(&waited, nanoseconds);
}

static bool is_of_code(const struct job *job, const void *code)
{
    return job->launch.instance->code == code;
}

static bool is_of_context(const struct job *job, const void *context)
{
    return job->context == context;
}

/* The lock is held. */
static void drop(bool (*matches)(const struct job *job, const void *wanted), const void *wanted)
{
    newest = &oldest;
    for (struct job **at = &oldest; *at;) {
        struct job *job = *at;
        if (!matches(job, wanted)) {
            at = &job->next;
            newest = at;
            continue;
        }
        *at = job->next;
        n_queued--;
        if (job->is_late)
            prepare_leave_late(job->kernel);
        let_go(job);
    }
}

/* Drops the jobs that wait, and has those under way wait for the engine no more: it may be asked twice for one. */
static void leave(bool (*matches)(const struct job *job, const void *wanted), const void *wanted)
{
    signals_lock(&mutex);
    drop(matches, wanted);
    while (is_under_way(matches, wanted)) {
        for (unsigned i = 0; i < n_begun; i++)
            if (under_way[i] && matches(under_way[i], wanted))
                connection_interrupt(threads[i]);
        const struct timespec deadline = clock_deadline(INTERRUPT_MILLISECONDS);
        pthread_cond_timedwait(&done, &mutex, &deadline);
    }
    signals_unlock(&mutex);
}

void background_leave(const struct code *code)
{
    leave(is_of_code, code);
}

void background_leave_context(CUcontext context)
{
    leave(is_of_context, context);
}

void background_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    pthread_cond_init(&arrived, NULL);
    pthread_cond_init(&done, NULL);
    oldest = NULL;
    newest = &oldest;
    memset(under_way, 0, sizeof under_way);
    n_threads = n_begun = n_idle = n_queued = n_late = 0;
    atomic_store(&waited, 0);
    waited_late = 0;
    late_take_long = false;
}
