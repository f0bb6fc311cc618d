/* Preloaded before the hook: once the file that READ_ONLY names is there, nothing can be made or written below the folder
 * of the traces, as if its disk had been mounted anew to be read only. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* True if PATH in FOLDER is in the traces. */
static bool is_refused(int folder, const char *path)
{
    char link[64], place[4096];
    const char *root = getenv("TUI_PROBE_TRACE_ROOT"), *sign = getenv("READ_ONLY");
    if (!root || !sign || syscall(SYS_access, sign, F_OK) != 0)
        return false;
    if (*path == '/')
        return strncmp(path, root, strlen(root)) == 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t n = readlink(link, place, sizeof place - 1);
    place[n < 0 ? 0 : n] = '\0';
    return strncmp(place, root, strlen(root)) == 0;
}

static int refuse(void)
{
    errno = EROFS;
    return -1;
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    if ((flags & (O_CREAT | O_WRONLY | O_RDWR)) && is_refused(folder, path))
        return refuse();
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    return openat(AT_FDCWD, path, flags, mode);
}

int mkdir(const char *path, mode_t mode)
{
    return is_refused(AT_FDCWD, path) ? refuse() : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int mkdirat(int folder, const char *path, mode_t mode)
{
    return is_refused(folder, path) ? refuse() : (int)syscall(SYS_mkdirat, folder, path, mode);
}

ssize_t write(int file, const void *bytes, size_t size)
{
    return is_refused(file, "") ? refuse() : syscall(SYS_write, file, bytes, size);
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t at)
{
    return is_refused(file, "") ? refuse() : syscall(SYS_pwrite64, file, bytes, size, at);
}

int renameat(int from, const char *path, int to, const char *name)
{
    return is_refused(from, path) ? refuse() : (int)syscall(SYS_renameat2, from, path, to, name, 0);
}
