#define _GNU_SOURCE
#include "loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "given.h"

static _Atomic(void *) next_dlopen, next_dlmopen;

/* Kept: a program may call these at any time, from any thread. */
static void *next(_Atomic(void *) *kept, const char *name)
{
    void *address = atomic_load_explicit(kept, memory_order_acquire);
    if (!address) {
        address = dlsym(RTLD_NEXT, name);
        atomic_store_explicit(kept, address, memory_order_release);
    }
    return address;
}

void *loader_next_dlopen(void)
{
    return next(&next_dlopen, "dlopen");
}

void *loader_next_dlmopen(void)
{
    return next(&next_dlmopen, "dlmopen");
}

void *loader_open(const char *path, int flags)
{
    void *(*open)(const char *, int) = (void *(*)(const char *, int))(uintptr_t)loader_next_dlopen();
    return open ? open(path, flags) : NULL;
}

bool loader_is_driver_name(const char *file)
{
    static const char stem[] = "libcuda.so";
    if (strncmp(file, stem, sizeof stem - 1) != 0)
        return false;
    const char *version = file + sizeof stem - 1;
    return *version == '\0' ||
           (*version == '.' && version[1] && version[1 + strspn(version + 1, ".0123456789")] == '\0');
}

bool loader_is_same_file(const char *path, const char *other)
{
    struct stat one, two;
    return stat(path, &one) == 0 && stat(other, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

/* A program that names another driver than the one we call (a copy for compatibility, one of its own) gets that. */
static bool is_our_driver(const char *path)
{
    const char *driver = given("TUI_PROBE_DRIVER");
    return driver && loader_is_same_file(path, driver);
}

/* A simulated driver stands for that of the machine, which need not have one. */
static bool stands_for_any_driver(void)
{
    return given("TUI_PROBE_SIM_PYTHON") != NULL;
}

/* LD_PRELOAD names the hook as "/.PATH". */
const char *loader_own_path(void)
{
    static const char anchor;
    Dl_info info;
    if (!dladdr(&anchor, &info))
        return NULL;
    return strncmp(info.dli_fname, "/./", 3) == 0 ? info.dli_fname + 2 : info.dli_fname;
}

/* A driver that opens itself, to look up its own functions, means itself. */
static bool is_in_our_driver(const void *code)
{
    Dl_info info;
    return dladdr(code, &info) && is_our_driver(info.dli_fname);
}

static bool is_ours_to_answer(const char *name, bool path, const void *caller)
{
    return (!path || stands_for_any_driver() || is_our_driver(name)) && !is_in_our_driver(caller);
}

const char *loader_name(const char *name, const void *caller)
{
    if (!name)
        return name;
    const char *slash = strrchr(name, '/');
    if (!loader_is_driver_name(slash ? slash + 1 : name))
        return name;
    const int caller_errno = errno;
    const char *own = is_ours_to_answer(name, slash, caller) ? loader_own_path() : NULL;
    errno = caller_errno;
    return own ? own : name;
}

/* Other lists of libraries than the program's first have none of tui-probe, and no business with it. */
const char *loader_name_in(long list, const char *name, const void *caller)
{
    return list == LM_ID_BASE ? loader_name(name, caller) : name;
}
