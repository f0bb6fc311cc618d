/* Faults of kernels that only the simulated driver reports: the one that made a context fail, findings of checks. */
#ifndef TUI_PROBE_SIMULATED_FAULT_H
#define TUI_PROBE_SIMULATED_FAULT_H

#include <stddef.h>
#include <stdint.h>

/* Writes "KERNEL: WORDS" of the last kernel that failed, one line; "" for other drivers. */
void simulated_fault_words(char *text, size_t size);

/* Logs the findings of checks since the last call, those of KERNEL as ones of its LAUNCH. NULL: of an unknown launch. */
void simulated_findings_log(const char *kernel, uint64_t launch);

#endif
