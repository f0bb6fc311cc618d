#define _GNU_SOURCE
#include "real.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "given.h"
#include "loader.h"

struct real_driver real_driver;
atomic_bool real_loaded;

static void *handle;
static uintptr_t base;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* So that a search path that leads back to us is recognised. */
static bool is_ourselves(const char *path)
{
    const char *own = loader_own_path();
    return own && loader_is_same_file(path, own);
}

/* By a path that no one else writes, the same as in audit.c: the loader may know us by the usual one, since a program
 * that opened that got us. */
static void *open_past_us(const char *path)
{
    char spelled[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash + 1 - path) : 0;
    const int length = snprintf(spelled, sizeof spelled, "%.*s./%s", folder, path, path + folder);
    return length < (int)sizeof spelled ? loader_open(spelled, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static bool open_driver(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || is_ourselves(path))
        return false;
    handle = open_past_us(path);
    return handle != NULL;
}

/* ld.so.cache holds NUL-terminated strings; every one that ends in our SONAME is a candidate. */
static bool open_from_cache(void)
{
    static const char soname[] = "/libcuda.so.1";
    FILE *cache = fopen("/etc/ld.so.cache", "rb");
    static char candidate[PATH_MAX]; /* called once */
    size_t length = 0;
    int byte;
    while (cache && !handle && (byte = getc(cache)) != EOF) {
        if (byte != '\0') {
            if (byte == '/' && length == 0)
                candidate[length++] = '/';
            else if (length > 0 && length < sizeof candidate - 1)
                candidate[length++] = (char)byte;
            continue;
        }
        candidate[length] = '\0';
        if (length >= sizeof soname && strcmp(candidate + length - (sizeof soname - 1), soname) == 0)
            open_driver(candidate);
        length = 0;
    }
    if (cache)
        fclose(cache);
    return handle != NULL;
}

static bool find_driver(void)
{
    static const char *const places[] = {
        "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/aarch64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1",
        "/usr/local/nvidia/lib64/libcuda.so.1",   "/usr/lib/wsl/lib/libcuda.so.1",
    };
    const char *asked = given("TUI_PROBE_DRIVER");
    if (asked && *asked)
        return open_driver(asked);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (open_driver(places[i]))
            return true;
    return open_from_cache();
}

static void load(void)
{
    Dl_info info;
    if (!find_driver())
        return;
    void *init = dlsym(handle, "cuInit");
    if (init && dladdr(init, &info))
        base = (uintptr_t)info.dli_fbase;
#define CUDA_FUNCTION(name, ...) real_driver.name = (__typeof__(name) *)(uintptr_t)dlsym(handle, #name);
#include "driver_functions.def"
#undef CUDA_FUNCTION
}

void real_load(void)
{
    pthread_once(&once, load);
    atomic_store_explicit(&real_loaded, true, memory_order_release);
}

void *real_symbol(const char *name)
{
    real();
    return handle ? dlsym(handle, name) : NULL;
}

void *real_handle(void)
{
    return handle;
}

uintptr_t real_base(void)
{
    return base;
}
