#include "errand.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>

#include "real.h"
#include "sandbox.h"
#include "signals.h"
#include "streams.h"
#include "threads.h"

static struct errand {
    void (*work)(void *argument);
    void *argument;
    CUcontext context;
} errand;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* held by the thread whose errand it is */
static atomic_bool running;
static sem_t asked, done;

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        ;
}

static void *run_errands(void *unused)
{
    (void)unused;
    capture_mode_relax();
    sandbox_begin();
    for (;;) {
        wait_for(&asked);
        REAL_OR_NOT_FOUND(cuCtxSetCurrent, errand.context);
        errand.work(errand.argument);
        REAL_OR_NOT_FOUND(cuCtxSetCurrent, NULL);
        sem_post(&done);
    }
    return NULL;
}

static bool start(void)
{
    return sem_init(&asked, 0, 0) == 0 && sem_init(&done, 0, 0) == 0 && thread_start(run_errands);
}

bool errand_start(void)
{
    if (atomic_load_explicit(&running, memory_order_acquire))
        return true;
    signals_lock(&mutex);
    if (!atomic_load(&running))
        atomic_store_explicit(&running, start(), memory_order_release);
    signals_unlock(&mutex);
    return atomic_load(&running);
}

static void hand_over(void (*work)(void *argument), void *argument)
{
    CUcontext context = NULL;
    if (REAL_OR_NOT_FOUND(cuCtxGetCurrent, &context) != CUDA_SUCCESS)
        context = NULL;
    pthread_mutex_lock(&mutex);
    errand = (struct errand){work, argument, context};
    sem_post(&asked);
    wait_for(&done);
    pthread_mutex_unlock(&mutex);
}

void errand_run(void (*work)(void *argument), void *argument)
{
    int cancelled;
    if (thread_is_ours() || !errand_start()) {
        work(argument);
        return;
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelled); /* sem_wait would be the end of a cancelled thread */
    signals_hold();
    hand_over(work, argument);
    signals_release();
    pthread_setcancelstate(cancelled, NULL);
}

void errand_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    atomic_store(&running, false);
    sandbox_reset();
}
