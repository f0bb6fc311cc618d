#include "background.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "clock.h"
#include "prepare.h"
#include "real.h"
#include "settings.h"
#include "signals.h"
#include "threads.h"

/* What launches may wait in all: half a second, and a twentieth of the time since the start. */
enum { WAIT_NANOSECONDS = 500000000, WAIT_PART = 20 };

struct job {
    struct job *next;
    struct kernel *kernel;
    struct launch launch; /* its shape and function; nothing that points into the program */
    CUcontext context;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static struct job *oldest, **newest = &oldest;
static bool running;   /* there is the thread */
static bool preparing; /* it is at work */
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static atomic_uint_fast64_t waited; /* nanoseconds */

static void lock(void)
{
    signals_hold();
    pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&mutex);
    signals_release();
}

static void let_go(struct job *job)
{
    atomic_store(&job->kernel->awaited, false);
    free(job);
}

static struct job *next_job(void)
{
    while (!oldest)
        pthread_cond_wait(&arrived, &mutex);
    struct job *job = oldest;
    oldest = job->next;
    if (!oldest)
        newest = &oldest;
    return job;
}

static void *prepare_jobs(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    for (;;) {
        struct job *job = next_job();
        preparing = true;
        pthread_mutex_unlock(&mutex);
        if (REAL_OR_NOT_FOUND(cuCtxSetCurrent, job->context) == CUDA_SUCCESS)
            prepare_kernel(job->kernel, &job->launch);
        let_go(job);
        pthread_mutex_lock(&mutex);
        preparing = false;
        pthread_cond_broadcast(&done);
    }
    return NULL;
}

/* The lock is held. */
static bool is_patient(void)
{
    const uint64_t run = clock_now() - clock_zero();
    return !oldest && !preparing && atomic_load(&waited) < WAIT_NANOSECONDS + run / WAIT_PART;
}

/* The lock is held. False if it cannot be done. */
static bool submit(struct kernel *kernel, const struct launch *launch)
{
    CUcontext context = NULL;
    if (REAL_OR_NOT_FOUND(cuCtxGetCurrent, &context) != CUDA_SUCCESS || !context)
        return false;
    if (!running && !(running = thread_start(prepare_jobs)))
        return false;
    struct job *job = malloc(sizeof *job);
    if (!job)
        return false;
    *job = (struct job){.kernel = kernel, .launch = *launch, .context = context};
    job->launch.form = LAUNCH_KERNEL;
    job->launch.parameters = job->launch.extra = NULL;
    job->launch.config = NULL;
    *newest = job;
    newest = &job->next;
    atomic_store(&kernel->awaited, true);
    pthread_cond_signal(&arrived);
    return true;
}

bool background_takes(struct kernel *kernel, const struct launch *launch)
{
    if (!settings.scheduled || settings.patient)
        return false;
    if (atomic_load(&kernel->awaited))
        return true;
    lock();
    bool takes = atomic_load(&kernel->awaited) || (!is_patient() && submit(kernel, launch));
    unlock();
    return takes;
}

void background_waited(uint64_t nanoseconds)
{
    atomic_fetch_add(&waited, nanoseconds);
}

void background_leave(const struct code *code)
{
    lock();
    newest = &oldest;
    for (struct job **at = &oldest; *at;) {
        struct job *job = *at;
        if (code && job->kernel->code != code) {
            at = &job->next;
            newest = at;
            continue;
        }
        *at = job->next;
        let_go(job);
    }
    while (preparing)
        pthread_cond_wait(&done, &mutex);
    unlock();
}

void background_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    pthread_cond_init(&arrived, NULL);
    pthread_cond_init(&done, NULL);
    oldest = NULL;
    newest = &oldest;
    running = preparing = false;
    atomic_store(&waited, 0);
}
