/* The C library's `syscall`, and the one that is before it: system calls that end the process are seen first. */
#ifndef TUI_PROBE_SYSTEM_CALL_H
#define TUI_PROBE_SYSTEM_CALL_H

#define SYSTEM_CALLS 512 /* greater numbers are not watched */

#ifndef __ASSEMBLER__

#include <stddef.h>

/* Seven words travel as the arguments of a variadic function do; a system call reads those that it takes. */
typedef long system_call_function(long number, long a, long b, long c, long d, long e, long f);

/* The C library's. The hook's own code calls it where a watched system call is not an act of the program's. */
extern system_call_function *system_call_next;

static inline long system_call(long number, long a, long b, long c)
{
    return system_call_next(number, a, b, c, 0, 0, 0);
}

/* The program's calls of these go to WATCHER, all others to NEXT, unless that is NULL. */
void system_call_watch(const short *numbers, size_t count, system_call_function *watcher, system_call_function *next);

#endif
#endif
