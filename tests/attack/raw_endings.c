/* A program that launches five kernels and ends past the functions of the C library that are named after its end.
 *
 * send NAME: it gives SIGTERM back to the system and sends it to itself by a function, or by `syscall` with a call of that
 * name. exit_group, exit, exit-first, exit-before, execve, execveat: it ends by `syscall`; with exit-first, when another
 * thread does, which launches five more, and with exit-before, only that one launches. goes-on: it calls `syscall` for
 * what does not end it, and launches five more. clones: it makes 100 children by `syscall`, each while results are on their way,
 * which launch, too, and end by exit and _exit in turn; none of them takes the rest of the test's time. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "gpu.h"

extern char **environ;

static int is(const char *one, const char *other)
{
    return strcmp(one, other) == 0;
}

static void send_raw(const char *call)
{
    const long process = getpid(), thread = gettid();
    siginfo_t information = {.si_signo = SIGTERM, .si_code = SI_QUEUE, .si_pid = getpid(), .si_uid = getuid()};
    if (is(call, "SYS_kill"))
        syscall(SYS_kill, process, SIGTERM);
    else if (is(call, "SYS_tkill"))
        syscall(SYS_tkill, thread, SIGTERM);
    else if (is(call, "SYS_tgkill"))
        syscall(SYS_tgkill, process, thread, SIGTERM);
    else if (is(call, "SYS_rt_sigqueueinfo"))
        syscall(SYS_rt_sigqueueinfo, process, SIGTERM, &information);
    else if (is(call, "SYS_rt_tgsigqueueinfo"))
        syscall(SYS_rt_tgsigqueueinfo, process, thread, SIGTERM, &information);
    else if (is(call, "SYS_pidfd_send_signal"))
        syscall(SYS_pidfd_send_signal, syscall(SYS_pidfd_open, process, 0), SIGTERM, NULL, 0);
}

static void send_signal(const char *function)
{
    const union sigval value = {0};
    signal(SIGTERM, SIG_DFL);
    if (is(function, "pthread_kill"))
        pthread_kill(pthread_self(), SIGTERM);
    else if (is(function, "pthread_sigqueue"))
        pthread_sigqueue(pthread_self(), SIGTERM, value);
    else if (is(function, "tgkill"))
        tgkill(getpid(), gettid(), SIGTERM);
    else if (is(function, "sigqueue"))
        sigqueue(getpid(), SIGTERM, value);
    else if (is(function, "killpg") && setpgid(0, 0) == 0)
        killpg(0, SIGTERM);
    else if (is(function, "kill-group") && setpgid(0, 0) == 0)
        kill(-getpgrp(), SIGTERM);
    else
        send_raw(function);
    pause(); /* the signal is on its way */
}

static void *end_last(void *kernel)
{
    while (syscall(SYS_tgkill, getpid(), getpid(), 0) == 0 && access("/proc/self/task", X_OK) == 0) {
        char state = 0;
        FILE *file = fopen("/proc/self/stat", "r");
        must(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && fclose(file) == 0, "no state");
        if (state == 'Z')
            break;
        usleep(1000);
    }
    launch(kernel, 5);
    return NULL;
}

static void go_on(void)
{
    errno = EXDEV;
    must(syscall(SYS_gettid) == gettid() && errno == EXDEV, "errno has changed");
    must(syscall(SYS_kill, getpid(), 0) == 0 && kill(getpid(), 0) == 0 && errno == EXDEV, "errno has changed");
    must(syscall(SYS_kill, getpid(), -1) == -1 && errno == EINVAL, "there is such a signal");
    must(syscall(SYS_execve, "/no/such/program", NULL, NULL) == -1 && errno == ENOENT, "there is one");
    const int file = open("/proc/self/exe", O_RDONLY);
    char *mapped = (char *)syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0L);
    must(mapped != MAP_FAILED && memcmp(mapped, "\177ELF", 4) == 0, "arguments are lost");
    const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    int status = 0;
    if (child == 0)
        syscall(SYS_exit_group, 4);
    must(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 4, "the child has not ended");
}

static void end_child(void *kernel, int n)
{
    alarm(20); /* one that hangs or spins is killed, and fails the parent */
    signal(SIGALRM, SIG_DFL);
    launch(kernel, 2);
    free(malloc(100000));
    if (n % 2)
        exit(0);
    _exit(0);
}

static void make_children(void *kernel)
{
    for (int n = 0; n < 100; n++) {
        int status = 0;
        launch(kernel, 20);
        usleep((useconds_t)n * 50);
        const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0)
            end_child(kernel, n);
        must(waitpid(child, &status, 0) == child && status == 0, "a child has not ended");
    }
}

int main(int argc, char **argv)
{
    char *const words[] = {"true", NULL};
    pthread_t thread;
    must(argc == 3, "usage: KIND HOW");
    const char *kind = argv[1];
    void *kernel = kernel_named("one");
    if (!is(kind, "exit-before"))
        launch(kernel, 5);
    if (is(kind, "send"))
        send_signal(argv[2]);
    else if (is(kind, "exit_group"))
        syscall(SYS_exit_group, 3);
    else if (is(kind, "execve"))
        syscall(SYS_execve, "/bin/true", words, environ);
    else if (is(kind, "execveat"))
        syscall(SYS_execveat, AT_FDCWD, "/bin/true", words, environ, 0);
    else if (is(kind, "goes-on"))
        go_on();
    else if (is(kind, "clones"))
        make_children(kernel);
    else if (!is(kind, "exit"))
        must(pthread_create(&thread, NULL, end_last, kernel) == 0, "no thread");
    if (strncmp(kind, "exit", 4) == 0)
        syscall(SYS_exit, 3);
    launch(kernel, 5);
    return 3;
}
