/* Capture: what is submitted to a stream becomes nodes of a graph instead. The caller holds the driver's lock. */
#ifndef TUI_PROBE_SIMGPU_CAPTURE_H
#define TUI_PROBE_SIMGPU_CAPTURE_H

#include "graph.h"

struct capture;

/* Of a stream, or of an event recorded in it: the nodes that what follows waits for. */
struct capture_point {
    struct capture *capture; /* NULL: none */
    struct graph_node **nodes;
    size_t n;
    CUgraphNode *handles; /* of the nodes, as the program was given them last; NULL: it was not */
};

/* The capture that the stream takes part in, or NULL. */
struct capture *capture_of(CUstream stream);

/* Adds a node for what was submitted to a stream in capture; takes over WORK. */
CUresult capture_work(CUstream stream, struct work *work);

/* Something that a capture forbids was asked for: it is broken. Returns the error. */
CUresult capture_break(struct capture_point *point);

/* FROM's nodes become TO's, or are added to them. */
CUresult capture_point_set(struct capture_point *to, const struct capture_point *from);
CUresult capture_point_join(struct capture_point *to, const struct capture_point *from);
void capture_point_clear(struct capture_point *point);

#endif
