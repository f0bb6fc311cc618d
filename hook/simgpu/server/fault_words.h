/* The fault of the last kernel that failed, and memory that it left, for a profiler: real drivers report neither. */
#ifndef TUI_PROBE_SIMGPU_FAULT_WORDS_H
#define TUI_PROBE_SIMGPU_FAULT_WORDS_H

#include <stdbool.h>

/* Keeps "KERNEL: WORDS" as one line, and whether the kernel was a DEADLOCK. */
void fault_words_keep(const char *kernel, const char *words, bool deadlock);

/* The private table by which a profiler asks; NULL for the identifier of any other. */
const void *fault_words_table(const void *id);

#endif
