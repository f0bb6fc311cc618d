/* Preloaded before the hook: a disk that takes SLOW_DISK milliseconds for each write into a result. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

ssize_t pwrite(int file, const void *bytes, size_t size, off_t at)
{
    const char *slow = getenv("SLOW_DISK");
    if (slow)
        usleep((useconds_t)atol(slow) * 1000);
    return syscall(SYS_pwrite64, file, bytes, size, at);
}
