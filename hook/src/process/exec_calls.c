/* A child of vfork, which shares our memory, calls these most: it has nothing to save. */
#define _GNU_SOURCE
#include "exec_calls.h"

#include <alloca.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "system_call.h"

#define API __attribute__((visibility("default")))

extern char **environ;

/* Looked up as the library is loaded: a child of vfork must not. */
static struct {
    int (*execvp)(const char *, char *const[]);
    int (*execvpe)(const char *, char *const[], char *const[]);
    int (*fexecve)(int, char *const[], char *const[]);
} next;

__attribute__((constructor)) static void look_up(void)
{
    next.execvp = (__typeof__(next.execvp))(uintptr_t)references_next("execvp", (void *)(uintptr_t)execvp);
    next.execvpe = (__typeof__(next.execvpe))(uintptr_t)references_next("execvpe", (void *)(uintptr_t)execvpe);
    next.fexecve = (__typeof__(next.fexecve))(uintptr_t)references_next("fexecve", (void *)(uintptr_t)fexecve);
}

static void do_nothing(void)
{
}

static void (*leave)(void) = do_nothing, (*stay)(void) = do_nothing;

/* Returns RESULT of a call that came back, with its errno. */
static int failed(int result)
{
    const int error = errno;
    stay();
    errno = error;
    return result;
}

API int execve(const char *path, char *const arguments[], char *const environment[])
{
    leave();
    return failed((int)system_call(SYS_execve, (long)path, (long)arguments, (long)environment));
}

API int execveat(int folder, const char *path, char *const arguments[], char *const environment[], int flags)
{
    leave();
    return failed(
        (int)system_call_next(SYS_execveat, folder, (long)path, (long)arguments, (long)environment, flags, 0));
}

API int execv(const char *path, char *const arguments[])
{
    return execve(path, arguments, environ);
}

API int fexecve(int file, char *const arguments[], char *const environment[])
{
    leave();
    return failed(next.fexecve(file, arguments, environment));
}

API int execvp(const char *file, char *const arguments[])
{
    leave();
    return failed(next.execvp(file, arguments));
}

API int execvpe(const char *file, char *const arguments[], char *const environment[])
{
    leave();
    return failed(next.execvpe(file, arguments, environment));
}

static size_t count(const char *first, va_list list)
{
    size_t n = first != NULL;
    while (first && va_arg(list, char *))
        n++;
    return n;
}

/* The arguments of a call whose first is FIRST, with the NULL behind them, on the caller's stack: a signal handler may
 * call, too. */
#define READ_ARGUMENTS(arguments, list, first)                                     \
    va_start(list, first);                                                         \
    const size_t n_##arguments = count(first, list) + 1;                           \
    va_end(list);                                                                  \
    char **arguments = alloca(n_##arguments * sizeof *arguments);                  \
    va_start(list, first);                                                         \
    arguments[0] = (char *)(uintptr_t)first;                                       \
    for (size_t i_##arguments = 1; i_##arguments < n_##arguments; i_##arguments++) \
    arguments[i_##arguments] = va_arg(list, char *)

API int execl(const char *path, const char *first, ...)
{
    va_list list;
    READ_ARGUMENTS(arguments, list, first);
    va_end(list);
    return execve(path, arguments, environ);
}

API int execle(const char *path, const char *first, ...)
{
    va_list list;
    READ_ARGUMENTS(arguments, list, first);
    char *const *environment = va_arg(list, char *const *);
    va_end(list);
    return execve(path, arguments, environment);
}

API int execlp(const char *file, const char *first, ...)
{
    va_list list;
    READ_ARGUMENTS(arguments, list, first);
    va_end(list);
    return execvp(file, arguments);
}

void exec_calls_watch(void (*before)(void), void (*after)(void), struct reference list[EXEC_FUNCTIONS])
{
#define OURS(name)                     \
    {                                  \
        #name, (void *)(uintptr_t)name \
    }
    static const struct reference all[EXEC_FUNCTIONS] = {OURS(execve),  OURS(execveat), OURS(execv),
                                                         OURS(fexecve), OURS(execvp),   OURS(execvpe),
                                                         OURS(execl),   OURS(execle),   OURS(execlp)};
#undef OURS
    leave = before;
    stay = after;
    for (size_t i = 0; i < EXEC_FUNCTIONS; i++)
        list[i] = all[i];
}
