/* The program's streams: captures in progress, and calls before one goes. */
#ifndef TUI_PROBE_STREAMS_H
#define TUI_PROBE_STREAMS_H

#include <stdbool.h>

#include "cuda_abi.h"

/* True if any stream of the process may be in capture. Costs nothing. */
bool streams_any_capture(void);

/* True if work for this stream would be captured, or be an error. Asks the driver only during captures. */
bool stream_is_capturing(CUstream stream);

/* Allows this thread calls that a capture elsewhere would forbid; returns what to restore. */
int capture_mode_relax(void);
void capture_mode_restore(int mode);

/* A capture is about to begin; that one did not; one ended. */
void streams_capture_begins(void);
void streams_capture_failed(void);
void streams_capture_ended(void);

void streams_reset(void);

#endif
