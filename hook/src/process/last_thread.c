#define _GNU_SOURCE
#include "last_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "threads.h"

/* A list of threads is not a snapshot: one may begin another and end while it is read. */
enum { LOOKS = 3, STEP_MICROSECONDS = 20000, SELDOM_MICROSECONDS = 500000 };

static sigset_t mask; /* of the first thread */
static pthread_key_t key;
static bool has_key, watched;
static atomic_int status = -1; /* of a first thread that has left by the system call; less than 0: none has */
static void (*end)(int);

static void *end_with_the_last(void *unused)
{
    (void)unused;
    for (unsigned looks = 0; looks < LOOKS;) {
        usleep(STEP_MICROSECONDS);
        looks = thread_state(getpid()) == 'Z' && threads_are_alone() ? looks + 1 : 0;
    }
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    if (atomic_load(&status) >= 0)
        end(atomic_load(&status));
    exit(0); /* as the C library does it */
}

/* Runs in a thread that leaves with pthread_exit, not where the process ends. */
static void left(void *unused)
{
    (void)unused;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    thread_start(end_with_the_last);
}

static void *wait_for_the_first(void *unused)
{
    while (thread_state(getpid()) != 'Z')
        usleep(SELDOM_MICROSECONDS);
    return end_with_the_last(unused);
}

void last_thread_watch(void (*end_process)(int))
{
    end = end_process;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    has_key = pthread_key_create(&key, left) == 0;
    watched = has_key && gettid() == getpid() && pthread_setspecific(key, &mask) == 0;
}

void last_thread_leaves(int with_status, bool begun)
{
    if (gettid() != getpid())
        return;
    if (begun && threads_are_alone())
        end(with_status);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    atomic_store(&status, with_status & 0xff);
    if (begun)
        thread_start(end_with_the_last);
}

void last_thread_begin(void)
{
    if (!has_key)
        return;
    if (gettid() == getpid()) {
        atomic_store(&status, -1); /* that of a parent, whose first thread had left */
        watched = pthread_setspecific(key, &mask) == 0;
    } else if (!watched || atomic_load(&status) >= 0)
        thread_start(wait_for_the_first);
}
