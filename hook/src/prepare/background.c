#define _GNU_SOURCE
#include "background.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "engine_client.h"
#include "prepare.h"
#include "real.h"
#include "sampled_form.h"
#include "settings.h"
#include "signals.h"
#include "threads.h"

/* The time that launches may wait in all: a second, and a twentieth of the time since the start. */
enum { WAIT_NANOSECONDS = 1000000000, WAIT_PART = 20 };

struct job {
    struct job *next; /* the next newer one */
    struct kernel *kernel;
    struct kernel_probe *form; /* whose sampled form is wanted; NULL: the kernel is */
    struct launch launch; /* its shape and function; nothing that points into the program */
    CUcontext context;
};

/* The engine assembles as many kernels at a time. */
enum { MOST_THREADS = 8, NANOSECONDS_PER_MILLISECOND = 1000000, INTERRUPT_MILLISECONDS = 20 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static struct job *oldest, **newest = &oldest;
static struct job *under_way[MOST_THREADS]; /* of each thread; NULL: it waits for one */
static pthread_t threads[MOST_THREADS];
static unsigned n_threads, n_begun, n_idle, n_queued;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static atomic_uint_fast64_t waited; /* nanoseconds */

static atomic_bool *awaited(struct kernel *kernel, struct kernel_probe *form)
{
    return form ? &form->sampled_form.awaited : &kernel->awaited;
}

static void let_go(struct job *job)
{
    atomic_store(awaited(job->kernel, job->form), false);
    free(job);
}

static void prepare(struct job *job)
{
    if (REAL_OR_NOT_FOUND(cuCtxSetCurrent, job->context) != CUDA_SUCCESS)
        return;
    if (job->form)
        sampled_form_prepare(job->form);
    else
        prepare_kernel(job->kernel, &job->launch);
}

/* Threads of the launch that asked: a kernel of more threads is taken to need more time of the GPU. */
static double size_of(const struct job *job)
{
    double threads = 1;
    for (int i = 0; i < 3; i++)
        threads *= (double)job->launch.grid[i] * job->launch.block[i];
    return threads;
}

/* Takes the job of the largest launch, the oldest of several: launches pass until their kernel is prepared. */
static struct job *next_job(void)
{
    while (!oldest)
        pthread_cond_wait(&arrived, &mutex);
    struct job **largest = &oldest;
    for (struct job **at = &oldest->next; *at; at = &(*at)->next)
        if (size_of(*at) > size_of(*largest))
            largest = at;
    struct job *job = *largest;
    *largest = job->next;
    if (!*largest)
        newest = largest;
    n_queued--;
    return job;
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
        prepare(job);
        pthread_mutex_lock(&mutex);
        *mine = NULL;
        let_go(job);
        pthread_cond_broadcast(&done);
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

/* Nanoseconds that a launch may still wait. */
static uint64_t patience(void)
{
    const uint64_t most = WAIT_NANOSECONDS + (clock_now() - clock_zero()) / WAIT_PART, so_far = atomic_load(&waited);
    return so_far < most ? most - so_far : 0;
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
    if (n_idle <= n_queued && n_threads < most_threads() && thread_start(prepare_jobs))
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
    *newest = job;
    newest = &job->next;
    n_queued++;
    atomic_store(awaited(kernel, form), true);
    pthread_cond_signal(&arrived);
    return true;
}

/* Waits, as long as launches still may, until IS_AWAITED is over. The lock is held. */
static void wait_for(const atomic_bool *is_awaited)
{
    const uint64_t began = clock_now(), most = patience();
    const struct timespec deadline = clock_deadline(most / NANOSECONDS_PER_MILLISECOND);
    while (atomic_load(is_awaited) && clock_now() - began < most &&
           pthread_cond_timedwait(&done, &mutex, &deadline) != ETIMEDOUT)
        ;
    if (atomic_load(is_awaited))
        atomic_fetch_add(&waited, clock_now() - began);
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
    if (submitted)
        wait_for(is_awaited);
    const bool takes = submitted && atomic_load(is_awaited);
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
                engine_interrupt(threads[i]);
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
    n_threads = n_begun = n_idle = n_queued = 0;
    atomic_store(&waited, 0);
}
