/* One chunk of probe memory: its pieces, and the streams that work in it. Its owner's lock is held. */
#ifndef TUI_PROBE_CHUNK_H
#define TUI_PROBE_CHUNK_H

#include "buffers.h"

/* Room for the N pieces of one more launch, and its stream; false without memory. */
bool chunk_reserve_pieces(struct chunk *chunk, size_t n);

/* The calling thread has just launched on STREAM. */
void chunk_note_stream(struct chunk *chunk, CUstream stream);

/* Records the events that are still missing; false if that must wait for the end of a capture. */
bool chunk_record_events(struct chunk *chunk);

/* The stream is about to be captured, and takes no event then. */
void chunk_mark_stream(struct chunk *chunk, CUstream stream);

/* The stream is about to be destroyed. */
void chunk_leave_stream(struct chunk *chunk, CUstream stream);

/* Waits for the launches; the lock is NOT held. */
CUresult chunk_wait(struct chunk *chunk);

/* Launches whose results would be written. */
size_t chunk_results(const struct chunk *chunk);

/* True if a piece before this one is of the same kernel. */
bool chunk_had_kernel(const struct chunk *chunk, size_t piece);

/* Its results will not be written, for REASON: counts them as dropped, and gives back what is reserved for them. */
void chunk_lose(const struct chunk *chunk, const struct reason *reason);

/* Takes *LINK out of its list, counts its results as dropped, and frees it. */
void chunk_drop(struct chunk **link);

/* Frees what the chunk is on the host. Its memory and events go with their context. */
void chunk_free(struct chunk *chunk);

/* Destroys its events. */
void chunk_destroy_events(struct chunk *chunk);

/* True if no launch of it is still running, judged by its events. The lock is NOT needed. */
bool chunk_is_done(const struct chunk *chunk);

#endif
