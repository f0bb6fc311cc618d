#define _GNU_SOURCE
#include "signal_calls.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hook_state.h"
#include "signals.h"
#include "system_call.h"

#define API __attribute__((visibility("default")))

/* Looked up as the library is loaded: a handler of a signal must not. */
static struct {
    int (*pthread_kill)(pthread_t, int);
    int (*pthread_sigqueue)(pthread_t, int, const union sigval);
    int (*sigqueue)(pid_t, int, const union sigval);
    int (*killpg)(pid_t, int);
    void (*abort)(void);
} next;

__attribute__((constructor)) static void look_up(void)
{
#define NEXT(name) next.name = (__typeof__(next.name))(uintptr_t)references_next(#name, (void *)(uintptr_t)name)
    NEXT(pthread_kill);
    NEXT(pthread_sigqueue);
    NEXT(sigqueue);
    NEXT(killpg);
    NEXT(abort);
#undef NEXT
}

void signal_calls_expect(pid_t process, int signal_number)
{
    if (hook_is_on() && (process == getpid() || process == 0 || process == -getpgrp()))
        signals_expect(signal_number);
}

/* Python ends so after an interrupt: it gives the signal back to the system and sends it to itself. */
API int kill(pid_t process, int signal_number)
{
    signal_calls_expect(process, signal_number);
    return (int)system_call(SYS_kill, process, signal_number, 0);
}

API int raise(int signal_number)
{
    signal_calls_expect(getpid(), signal_number);
    return (int)system_call(SYS_tgkill, getpid(), gettid(), signal_number);
}

API int tgkill(pid_t process, pid_t thread, int signal_number)
{
    signal_calls_expect(process, signal_number);
    return (int)system_call(SYS_tgkill, process, thread, signal_number);
}

API int killpg(pid_t group, int signal_number)
{
    signal_calls_expect(-group, signal_number);
    return next.killpg(group, signal_number);
}

API int sigqueue(pid_t process, int signal_number, const union sigval value)
{
    signal_calls_expect(process, signal_number);
    return next.sigqueue(process, signal_number, value);
}

API int pthread_kill(pthread_t thread, int signal_number)
{
    signal_calls_expect(getpid(), signal_number);
    return next.pthread_kill(thread, signal_number);
}

API int pthread_sigqueue(pthread_t thread, int signal_number, const union sigval value)
{
    signal_calls_expect(getpid(), signal_number);
    return next.pthread_sigqueue(thread, signal_number, value);
}

API void abort(void)
{
    signal_calls_expect(getpid(), SIGABRT);
    for (;;)
        next.abort();
}

void signal_calls_list(struct reference list[SIGNAL_FUNCTIONS])
{
#define OURS(name)                     \
    {                                  \
        #name, (void *)(uintptr_t)name \
    }
    static const struct reference all[SIGNAL_FUNCTIONS] = {OURS(kill),         OURS(raise),           OURS(tgkill),
                                                           OURS(killpg),       OURS(sigqueue),        OURS(abort),
                                                           OURS(pthread_kill), OURS(pthread_sigqueue)};
#undef OURS
    for (size_t i = 0; i < SIGNAL_FUNCTIONS; i++)
        list[i] = all[i];
}
