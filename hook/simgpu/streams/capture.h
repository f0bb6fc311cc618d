/* Capture: what is submitted to a stream becomes nodes of a graph instead. The caller holds the driver's lock. */
#ifndef TUI_PROBE_SIMGPU_CAPTURE_H
#define TUI_PROBE_SIMGPU_CAPTURE_H

#include "capture_point.h"
#include "work.h"

struct capture {
    struct graph *graph;
    struct capture_point *origin; /* the stream's that it began in */
    uint64_t id;
    bool broken, to_graph;
};

/* The capture that the stream takes part in, or NULL. */
struct capture *capture_of(CUstream stream);

/* Adds a node for what was submitted to a stream in capture; takes over WORK. */
CUresult capture_work(CUstream stream, struct work *work);

/* Something that a capture forbids was asked for: it is broken. Returns the error. */
CUresult capture_break(struct capture_point *point);

/* Into a graph of the program's, behind these nodes of it, or into a new one for NULL. */
CUresult capture_begin(CUstream stream, struct graph *graph, const CUgraphNode *nodes, size_t n, int mode);
CUresult capture_end(CUstream stream, CUgraph *handle);

#endif
