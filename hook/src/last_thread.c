#define _GNU_SOURCE
#include "last_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "threads.h"

/* A list of threads is no snapshot: one may begin another and end while it is read. */
enum { LOOKS = 3, STEP_MICROSECONDS = 20000 };

static sigset_t mask; /* of the first thread */

static void *end_with_the_last(void *unused)
{
    (void)unused;
    for (unsigned alone = 0; alone < LOOKS;) {
        usleep(STEP_MICROSECONDS);
        alone = thread_state(getpid()) == 'Z' && threads_are_alone() ? alone + 1 : 0;
    }
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    exit(0); /* as the C library does it */
}

/* Runs in a thread that leaves with pthread_exit, not where the process ends. */
static void left(void *unused)
{
    (void)unused;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    thread_start(end_with_the_last);
}

void last_thread_watch(void)
{
    pthread_key_t key;
    if (gettid() == getpid() && pthread_key_create(&key, left) == 0)
        pthread_setspecific(key, &mask);
}
