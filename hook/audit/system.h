/* The few system calls of the audit library, which has no C library. They return the system's answer, below 0 for an
 * error. */
#ifndef TUI_PROBE_AUDIT_SYSTEM_H
#define TUI_PROBE_AUDIT_SYSTEM_H

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
static inline long system_call(long number, long a, long b, long c, long d)
{
    long answer;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return answer;
}
#elif defined(__aarch64__)
static inline long system_call(long number, long a, long b, long c, long d)
{
    register long answer __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    register long called __asm__("x8") = number;
    __asm__ volatile("svc 0" : "+r"(answer) : "r"(second), "r"(third), "r"(fourth), "r"(called) : "memory");
    return answer;
}
#endif

/* On these processors the kernel's record of a file is laid out as the C library's. */
static inline long system_stat(const char *path, struct stat *status)
{
    return system_call(SYS_newfstatat, AT_FDCWD, (long)path, (long)status, 0);
}

static inline long system_access(const char *path)
{
    return system_call(SYS_faccessat, AT_FDCWD, (long)path, F_OK, 0);
}

static inline long system_open(const char *path, int flags)
{
    return system_call(SYS_openat, AT_FDCWD, (long)path, flags, 0600);
}

static inline long system_write(int file, const char *bytes, unsigned long size)
{
    return system_call(SYS_write, file, (long)bytes, (long)size, 0);
}

static inline long system_read_at(int file, void *to, unsigned long size, unsigned long offset)
{
    return system_call(SYS_pread64, file, (long)to, (long)size, (long)offset);
}

static inline long system_execute(const char *path, char **arguments, char **environment)
{
    return system_call(SYS_execve, (long)path, (long)arguments, (long)environment, 0);
}

static inline void system_close(int file)
{
    system_call(SYS_close, file, 0, 0, 0);
}

static inline long system_process(void)
{
    return system_call(SYS_getpid, 0, 0, 0, 0);
}

#endif
