#define _GNU_SOURCE
#include "threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 32, STATUS_BYTES = 128, PATH_BYTES = 64, ENTRIES_BYTES = 4096 };

/* Not what the program sets as the default, which may be as little as 16 KiB. */
enum { STACK_BYTES = 4 << 20 };

static atomic_int ours[MOST];
static atomic_int n_ours;
static _Thread_local bool is_one_of_ours __attribute__((tls_model("initial-exec")));

static void *begin(void *body)
{
    const int n = atomic_fetch_add(&n_ours, 1);
    is_one_of_ours = true;
    if (n < MOST)
        atomic_store(&ours[n], (int)gettid());
    return ((void *(*)(void *))(uintptr_t)body)(NULL);
}

bool thread_start(void *(*body)(void *))
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int error = pthread_create(&thread, &attributes, begin, (void *)(uintptr_t)body);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0;
}

bool thread_is_ours(void)
{
    return is_one_of_ours;
}

int thread_state_open(void)
{
    return open("/proc/thread-self/stat", O_RDONLY | O_CLOEXEC);
}

char thread_state(int id)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", id);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const char state = thread_state_read(file);
    if (file >= 0)
        close(file);
    return state;
}

char thread_state_read(int file)
{
    char status[STATUS_BYTES];
    const ssize_t n = file < 0 ? -1 : pread(file, status, sizeof status - 1, 0);
    status[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(status, ')'); /* of the name, which may hold any character */
    return end && end[1] == ' ' ? end[2] : '\0';
}

static bool is_ours(int id)
{
    for (int i = 0; i < MOST; i++)
        if (atomic_load(&ours[i]) == id)
            return true;
    return false;
}

/* Not by readdir, which allocates: a thread of the program may have been stopped with the lock of malloc. */
bool threads_each_other(void (*visit)(int id, void *argument), void *argument)
{
    _Alignas(struct dirent64) char entries[ENTRIES_BYTES];
    const int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (ssize_t n; folder >= 0 && (n = getdents64(folder, entries, sizeof entries)) > 0;)
        for (ssize_t at = 0; at < n; at += ((const struct dirent64 *)(entries + at))->d_reclen) {
            const int id = atoi(((const struct dirent64 *)(entries + at))->d_name);
            if (id && !is_ours(id))
                visit(id, argument);
        }
    return folder >= 0 && close(folder) == 0;
}

static void note_other(int id, void *is_only)
{
    if (id != getpid())
        *(bool *)is_only = false;
}

bool threads_are_alone(void)
{
    bool is_only = true;
    return threads_each_other(note_other, &is_only) && is_only;
}

void threads_reset(void)
{
    memset(ours, 0, sizeof ours);
    atomic_store(&n_ours, 0);
}
