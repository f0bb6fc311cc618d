/* A program that loads a module, forbids itself system calls, launches 20 kernels and ends with exit(3).
 *
 * "kill": any call but the few that a C library and a lock need ends the process. "errno": those calls fail with EPERM.
 * "all": the filter is one of all threads, and kills on calls that make files, sockets and threads. "later": as "all", after
 * the first launch. "first": as "all", but for this thread only, before the driver is initialized. "harmless": as "first",
 * and it allows all calls, as those of containers do. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "gpu.h"

enum { MOST = 64 };

static const unsigned few[] = {SYS_futex,      SYS_write,          SYS_exit_group,      SYS_exit,   SYS_brk,
                               SYS_mmap,       SYS_munmap,         SYS_mprotect,        SYS_getpid, SYS_gettid,
                               SYS_newfstatat, SYS_rt_sigprocmask, SYS_clock_nanosleep, SYS_madvise};

static const unsigned makers[] = {SYS_socket, SYS_connect, SYS_mkdirat, SYS_linkat, SYS_renameat2, SYS_ftruncate,
#ifdef SYS_mkdir
                                  SYS_mkdir,  SYS_link,    SYS_rename,
#endif
                                  SYS_statfs, SYS_fstatfs};

/* MATCHED for the calls of a list, and OTHERWISE for all others. */
static int install(const unsigned *list, size_t n, unsigned matched, unsigned otherwise, unsigned flags)
{
    struct sock_filter filter[2 * MOST + 2];
    unsigned short length = 0;
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < n; i++) {
        filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, list[i], 0, 1);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, matched);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
    struct sock_fprog program = {length, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static int forbid(const char *how)
{
    const unsigned end = strcmp(how, "harmless") == 0 ? SECCOMP_RET_ALLOW : SECCOMP_RET_KILL_PROCESS;
    const unsigned flags = strcmp(how, "all") == 0 || strcmp(how, "later") == 0 ? SECCOMP_FILTER_FLAG_TSYNC : 0;
    if (strcmp(how, "kill") == 0)
        return install(few, sizeof few / sizeof *few, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS, 0);
    if (strcmp(how, "errno") == 0)
        return install(few, sizeof few / sizeof *few, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM, 0);
    return install(makers, sizeof makers / sizeof *makers, end, SECCOMP_RET_ALLOW, flags);
}

int main(int argc, char **argv)
{
    must(argc == 2, "usage: kill|errno|all|later|first|harmless");
    const int early = strcmp(argv[1], "first") == 0 || strcmp(argv[1], "harmless") == 0;
    if (early && forbid(argv[1]))
        return 77;
    void *kernel = kernel_named("one");
    if (strcmp(argv[1], "later") == 0)
        launch(kernel, 5);
    if (!early && forbid(argv[1]))
        return 77;
    launch(kernel, 20);
    launch(kernel_named("two"), 5);
    must(write(1, "done\n", 5) == 5, "no output");
    exit(3);
}
