/* Tail jumps to the real driver for every exported name that the hook does not implement. */
#ifndef TUI_PROBE_TRAMPOLINE_H
#define TUI_PROBE_TRAMPOLINE_H

#include <stddef.h>

/* Generated from symbols.txt. */
extern const size_t trampoline_count;
extern const char *const trampoline_names[];
extern _Atomic(void *) trampoline_table[];

/* Called by trampoline_resolve with the argument registers saved: fills and returns one table entry. */
void *trampoline_lookup(size_t index);

#endif
