/* Findings of the server's checks of kernels, for a profiler: real drivers have none. */
#ifndef TUI_PROBE_SIMGPU_FINDINGS_H
#define TUI_PROBE_SIMGPU_FINDINGS_H

#include "message.h"

/* Keeps what a reply to a launch ends with: u32 count, a TEXT each. */
void findings_keep(struct reader *body);

/* Keeps the findings of a launch that has not ended, in place of its earlier ones: u32 count, a TEXT each. */
void findings_keep_running(struct reader *body);

/* The private table by which a profiler takes them; NULL for the identifier of any other. */
const void *findings_table(const void *id);

#endif
