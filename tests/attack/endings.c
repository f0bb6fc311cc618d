/* A program that launches five kernels, ends or continues in an unusual way, and launches more where it continues.
 *
 * exec NAME: another program takes its place by a function of that name. exec-fails: none does, and it continues.
 * clone, _Fork: a child launches that was made past the handlers of fork. handler, destructor, quick: launches come after
 * exit has begun. blocked, timed, reset: a signal that it sends itself does not end it. raise, kill: one does, and no other
 * thread writes after it. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "gpu.h"

extern char **environ;

static void *kernel;
static int launches_at_end;
static atomic_int written;

static void launch_at_end(void)
{
    if (launches_at_end)
        launch(kernel, 5);
}

static __attribute__((destructor)) void in_destructor(void)
{
    if (launches_at_end == 2)
        launch(kernel, 5);
}

static void start(void)
{
    kernel = kernel_named("one");
    launch(kernel, 5);
}

static int replace(const char *name)
{
    char *const words[] = {"true", NULL};
    if (strcmp(name, "execv") == 0)
        return execv("/bin/true", words);
    if (strcmp(name, "execve") == 0)
        return execve("/bin/true", words, environ);
    if (strcmp(name, "execvp") == 0)
        return execvp("true", words);
    if (strcmp(name, "execvpe") == 0)
        return execvpe("true", words, environ);
    if (strcmp(name, "execl") == 0)
        return execl("/bin/true", "true", "1", "2", NULL);
    if (strcmp(name, "execlp") == 0)
        return execlp("true", "true", "1", NULL);
    if (strcmp(name, "execle") == 0)
        return execle("/bin/true", "true", NULL, environ);
    if (strcmp(name, "fexecve") == 0)
        return fexecve(open("/bin/true", O_RDONLY | O_CLOEXEC), words, environ);
    return execveat(AT_FDCWD, "/bin/true", words, environ, 0);
}

static int in_child(pid_t child)
{
    int status;
    if (child == 0) {
        start();
        exit(0);
    }
    waitpid(child, &status, 0);
    return status;
}

static void nothing(int unused)
{
    (void)unused;
}

static int survive(const char *how)
{
    const int number = strcmp(how, "timed") == 0 ? SIGRTMIN + 2 : SIGUSR1;
    const struct timespec soon = {.tv_sec = 5};
    const struct sigaction once = {.sa_handler = nothing, .sa_flags = SA_RESETHAND};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    if (strcmp(how, "reset") == 0)
        sigaction(number, &once, NULL);
    else
        sigprocmask(SIG_BLOCK, &set, NULL);
    start();
    if (strcmp(how, "blocked") == 0)
        signal(number, SIG_DFL); /* gives it back to the system: the hook's handler is gone */
    kill(getpid(), number);
    if (strcmp(how, "reset") != 0)
        must(sigtimedwait(&set, NULL, &soon) == number, "no signal");
    launch(kernel, 5);
    return 3;
}

static void *write_without_end(void *unused)
{
    for (;;) {
        usleep(1000);
        must(write(1, "x", 1) == 1, "no output");
        atomic_fetch_add(&written, 1);
    }
    return unused;
}

/* Only what was written before the signal is there: the bytes are counted up to the moment of it. */
static void die(const char *how)
{
    pthread_t thread;
    start();
    launch(kernel, 200);
    pthread_create(&thread, NULL, write_without_end, NULL);
    while (atomic_load(&written) < 5)
        usleep(1000);
    must(write(1, "!", 1) == 1, "no output");
    if (strcmp(how, "kill") == 0) {
        signal(SIGTERM, SIG_DFL);
        kill(getpid(), SIGTERM);
    } else if (strcmp(how, "abort") == 0) {
        abort();
    } else {
        raise(SIGTERM);
    }
    must(write(1, "after", 5) == 5, "no output");
}

int main(int argc, char **argv)
{
    must(argc == 3, "usage: KIND HOW");
    const char *kind = argv[1], *how = argv[2];
    if (strcmp(kind, "child") == 0)
        return in_child(strcmp(how, "clone") == 0 ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : _Fork());
    if (strcmp(kind, "signal") == 0)
        return survive(how);
    if (strcmp(kind, "death") == 0)
        die(how);
    atexit(launch_at_end);
    at_quick_exit(launch_at_end);
    start();
    if (strcmp(kind, "exec") == 0)
        return replace(how);
    if (strcmp(kind, "exec-fails") == 0) {
        must(execl("/no/such/program", "no", NULL) == -1, "there is one");
        launch(kernel, 5);
        return 3;
    }
    launches_at_end = strcmp(how, "destructor") == 0 ? 2 : 1;
    if (strcmp(how, "quick") == 0)
        quick_exit(3);
    exit(3);
}
