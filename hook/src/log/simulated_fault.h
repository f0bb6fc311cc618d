/* The fault of a kernel that made a context fail: only the simulated driver reports it. */
#ifndef TUI_PROBE_SIMULATED_FAULT_H
#define TUI_PROBE_SIMULATED_FAULT_H

#include <stddef.h>

/* Writes "KERNEL: WORDS" of the last kernel that failed, one line; "" for other drivers. */
void simulated_fault_words(char *text, size_t size);

#endif
