/* NVTX ranges of the program, with the launches that they enclose.
 *
 * A pushed range encloses the launches of its thread until it is popped; a started one those of all threads until it
 * ends. A range that encloses a launch becomes a line of event.log when it ends; host-only ranges leave nothing. */
#ifndef TUI_PROBE_NVTX_H
#define TUI_PROBE_NVTX_H

#include <stdbool.h>
#include <stdint.h>

struct nvtx_domain;

/* A range of the calling thread begins, and the newest one of DOMAIN ends. TEXT is from malloc and is taken over; NULL: the
 * range is not recorded. */
void nvtx_push(const struct nvtx_domain *domain, char *text);
void nvtx_pop(const struct nvtx_domain *domain);

/* The same of all threads, by a number that is not 0 for a recorded range. */
uint64_t nvtx_start(const struct nvtx_domain *domain, char *text);
void nvtx_end(uint64_t id);

/* To be called for each launch, or N of consecutive numbers, on the launching thread. */
void nvtx_launched(uint64_t first, uint64_t n);

/* True if the calling thread is in a range with the text of settings.nvtx, pushed by itself or started by any. */
bool nvtx_is_inside(void);

/* Logs the ranges that are still open, at the end of the trace. */
void nvtx_flush(void);

/* Forgets everything, in a forked child. */
void nvtx_reset(void);

#endif
