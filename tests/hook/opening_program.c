/* Opens the driver by a name (second argument), in a way (first: plain, present, new,
 * direct), launches one kernel with it, and
 * prints which file answered. With two more arguments, ends in that way with that status. As a library, opens what it is asked to as its own caller. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *function(void *library, const char *name)
{
    return dlsym(library, name);
}

__attribute__((visibility("default"))) void *open_here(const char *name, int flags)
{
    return dlopen(name, flags);
}

/* With the C library's dlopen, as a library does that was opened with RTLD_DEEPBIND. */
static void *open_directly(const char *name)
{
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    void *(*open)(const char *, int) = (void *(*)(const char *, int))(uintptr_t)function(libc, "dlopen");
    return open ? open(name, RTLD_NOW) : NULL;
}

static void *open_in_a_way(const char *way, const char *name)
{
    if (strcmp(way, "new") == 0)
        return dlmopen(LM_ID_NEWLM, name, RTLD_NOW);
    if (strcmp(way, "direct") == 0)
        return open_directly(name);
    return dlopen(name, strcmp(way, "present") == 0 ? RTLD_NOW | RTLD_NOLOAD : RTLD_NOW);
}

static int launch(void *cuda)
{
    int (*init)(unsigned) = (int (*)(unsigned))(uintptr_t)function(cuda, "cuInit");
    int (*create)(void **, unsigned, int) =
        (int (*)(void **, unsigned, int))(uintptr_t)function(cuda, "cuCtxCreate_v2");
    int (*load)(void **, const void *) = (int (*)(void **, const void *))(uintptr_t)function(cuda, "cuModuleLoadData");
    int (*find)(void **, void *, const char *) =
        (int (*)(void **, void *, const char *))(uintptr_t)function(cuda, "cuModuleGetFunction");
    int (*allocate)(uint64_t *, size_t) = (int (*)(uint64_t *, size_t))(uintptr_t)function(cuda, "cuMemAlloc_v2");
    int (*start)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                 void **) = (int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                     void *, void **, void **))(uintptr_t)function(cuda, "cuLaunchKernel");
    void *context, *module, *kernel;
    uint64_t word;
    void *parameters[] = {&word};
    return init(0) || create(&context, 0, 0) || load(&module, ".version 8.0\n.target sm_80\n") ||
           find(&kernel, module, "add__8") || allocate(&word, sizeof word) ||
           start(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
}

static void (*const pointer)(int) = _exit; /* in data that the loader makes constant */

static void end(const char *way, int status)
{
    fflush(stdout);
    if (strcmp(way, "_exit") == 0)
        _exit(status);
    if (strcmp(way, "_Exit") == 0)
        _Exit(status);
    if (strcmp(way, "quick_exit") == 0)
        quick_exit(status);
    (*(void (*const volatile *)(int))&pointer)(status);
}

int main(int count, char **words)
{
    void *cuda = count >= 3 ? open_in_a_way(words[1], words[2]) : NULL;
    Dl_info info;
    if (!cuda) {
        printf("-\n");
        return 3;
    }
    if (!dladdr(function(cuda, "cuLaunchKernel"), &info))
        return 4;
    printf("%s\n", info.dli_fname);
    const int failed = launch(cuda);
    if (!failed && count == 5)
        end(words[3], atoi(words[4]));
    return failed;
}
