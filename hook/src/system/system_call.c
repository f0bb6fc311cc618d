#define _GNU_SOURCE
#include "system_call.h"

#include <dlfcn.h>
#include <stdint.h>

/* For the function in system_call_entry.S. */
__attribute__((visibility("hidden"))) system_call_function *system_call_watcher;
__attribute__((visibility("hidden"))) unsigned char system_call_watched[SYSTEM_CALLS];

/* Constructors of libraries that come before ours may call. */
static long look_up(long number, long a, long b, long c, long d, long e, long f)
{
    system_call_next = (system_call_function *)(uintptr_t)dlsym(RTLD_NEXT, "syscall");
    return system_call_next(number, a, b, c, d, e, f);
}

system_call_function *system_call_next = look_up;

void system_call_watch(const short *numbers, size_t count, system_call_function *watcher, system_call_function *next)
{
    system_call_watcher = watcher;
    if (next)
        system_call_next = next;
    for (size_t i = 0; i < count; i++)
        system_call_watched[numbers[i]] = 1;
}
