/* Faults of kernels that only the simulated driver reports: the one that made a context fail, findings of checks. */
#ifndef TUI_PROBE_SIMULATED_FAULT_H
#define TUI_PROBE_SIMULATED_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes "KERNEL: WORDS" of the last kernel that failed, one line; "" for other drivers. */
void simulated_fault_words(char *text, size_t size);

/* True if the last kernel that failed was a deadlock, which the simulated driver finds and ends; false for others. */
bool simulated_deadlock(void);

/* Reads device memory at ADDRESS, though a kernel has failed. False for other drivers. */
bool simulated_memory(void *to, uint64_t address, size_t size);

/* Logs the findings of checks since the last call, those of KERNEL as ones of its LAUNCH. NULL: of an unknown launch. */
void simulated_findings_log(const char *kernel, uint64_t launch);

/* Logs those so far of LAUNCH of KERNEL, which has not ended and may never do so. Each finding is logged once. */
void simulated_findings_log_running(const char *kernel, uint64_t launch);

#endif
