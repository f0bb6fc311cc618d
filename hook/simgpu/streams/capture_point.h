/* The position of a stream, or of an event recorded in it, in a capture. */
#ifndef TUI_PROBE_SIMGPU_CAPTURE_POINT_H
#define TUI_PROBE_SIMGPU_CAPTURE_POINT_H

#include "cuda_abi.h"

#include <stdbool.h>
#include <stddef.h>

struct capture;
struct graph_node;

/* The nodes that what follows waits for. */
struct capture_point {
    struct capture *capture; /* NULL: none */
    struct graph_node **nodes;
    size_t n;
    CUgraphNode *handles; /* of the nodes, as the program was given them last; NULL: it was not */
};

/* Unless it is there already; false out of memory. */
bool capture_point_add(struct capture_point *point, struct graph_node *node);

/* FROM's nodes become TO's, or are added to them. */
CUresult capture_point_set(struct capture_point *to, const struct capture_point *from);
CUresult capture_point_join(struct capture_point *to, const struct capture_point *from);
void capture_point_clear(struct capture_point *point);

#endif
