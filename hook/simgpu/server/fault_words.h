/* The fault of the last kernel that failed, for a profiler: real drivers do not report it. */
#ifndef TUI_PROBE_SIMGPU_FAULT_WORDS_H
#define TUI_PROBE_SIMGPU_FAULT_WORDS_H

/* Keeps "KERNEL: WORDS" as one line. */
void fault_words_keep(const char *kernel, const char *words);

/* The private table by which a profiler asks; NULL for the identifier of any other. */
const void *fault_words_table(const void *id);

#endif
