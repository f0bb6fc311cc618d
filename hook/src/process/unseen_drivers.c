#define _GNU_SOURCE
#include "unseen_drivers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "given.h"
#include "loader.h"
#include "own_file.h"
#include "real.h"
#include "settings.h"

enum { LINE_SIZE = PATH_MAX + 128 };

static atomic_flag reported = ATOMIC_FLAG_INIT;

struct scan {
    const char *own;  /* the path of this library */
    unsigned copies;  /* of it in this process: one more for each list of libraries that it was opened in */
    bool telling;
};

/* In the folder of this library: itself, or what is found there by another name. */
static bool in_our_folder(const char *path, const char *own)
{
    const char *slash = strrchr(own, '/');
    const size_t length = slash ? (size_t)(slash - own) + 1 : 0;
    return length && strncmp(path, own, length) == 0 && !strchr(path + length, '/');
}

/* True if a driver that begins at START is one that no one of us calls. A copy of this library in another list of
 * libraries calls the same file at another place, and which that is only the copy knows. */
static bool is_unseen(const char *path, uintptr_t start, const struct scan *scan)
{
    if (start == real_base())
        return false;
    const char *driver = given("TUI_PROBE_DRIVER");
    return scan->copies < 2 || !driver || !loader_is_same_file(path, driver);
}

/* Called in one thread, once: what it needs is on no one's stack. */
static void tell_of(const char *path)
{
    static char line[LINE_SIZE];
    int length = snprintf(line, sizeof line, "%d %s\n", (int)getpid(), path);
    struct own_file file;
    if (!own_file_take(&file, open(settings.unseen_drivers, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)))
        return;
    if (length > 0 && (size_t)length < sizeof line && !own_file_write_all(&file, line, (size_t)length))
        errno = 0; /* a full disk: then it is not told */
    own_file_close(&file);
}

/* A line of /proc/self/maps. Only where a file begins is looked at.
 * "7f0000000000-7f0000001000 r--p 00000000 08:01 42    /usr/lib/libcuda.so.1" */
static void look_at_line(char *line, struct scan *scan)
{
    char *rest;
    const uintptr_t start = strtoull(line, &rest, 16);
    const char *path = strchr(line, '/'), *permissions = strchr(rest, ' ');
    if (!path || !permissions || !loader_is_driver_name(strrchr(path, '/') + 1) ||
        strtoull(permissions + strlen(" r--p "), NULL, 16) != 0)
        return;
    scan->copies += !scan->telling && strcmp(path, scan->own) == 0;
    if (scan->telling && !in_our_folder(path, scan->own) && is_unseen(path, start, scan))
        tell_of(path);
}

/* Looks at each whole line of TEXT, and returns the bytes that they take. */
static size_t look_at(char *text, struct scan *scan)
{
    char *line = text;
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        look_at_line(line, scan);
    }
    return (size_t)(line - text);
}

static void look_at_maps(struct scan *scan)
{
    static char text[2 * LINE_SIZE];
    size_t held = 0;
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t n; maps >= 0 && (n = read(maps, text + held, sizeof text - 1 - held)) > 0;) {
        held += (size_t)n;
        text[held] = '\0';
        const size_t used = look_at(text, scan);
        memmove(text, text + used, held - used);
        held -= used;
    }
    if (maps >= 0)
        close(maps);
}

void unseen_drivers_report(void)
{
    const char *own = loader_own_path();
    if (!settings.unseen_drivers || !own || atomic_flag_test_and_set(&reported))
        return;
    const int caller_errno = errno;
    struct scan scan = {.own = own};
    look_at_maps(&scan);
    scan.telling = true;
    look_at_maps(&scan);
    errno = caller_errno;
}

void unseen_drivers_reset(void)
{
    atomic_flag_clear(&reported);
}
