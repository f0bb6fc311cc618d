/* What the hook must know about the program's streams: which are in capture, and when one goes. */
#ifndef TUI_PROBE_STREAMS_H
#define TUI_PROBE_STREAMS_H

#include <stdbool.h>

#include "cuda_abi.h"

/* Whether any stream of the process may be in capture. Costs nothing. */
bool streams_any_capture(void);

/* Whether work for this stream would be captured, or be an error. Asks the driver only during captures. */
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
