/* Nodes of captured launches: which launch each was, so that a node keeps the ranges that were open then. */
#ifndef TUI_PROBE_GRAPH_CAPTURED_H
#define TUI_PROBE_GRAPH_CAPTURED_H

#include <stdint.h>

#include "kernel.h"

enum { GRAPH_NOT_CAPTURED = -1 };

/* A launch of KERNEL for STREAM has returned, which may be in capture. */
void graph_captured_note(CUstream stream, const struct kernel *kernel, uint64_t number);

/* The number of the launch that NODE, of KERNEL, was captured from; GRAPH_NOT_CAPTURED: it was not. */
int64_t graph_captured_number(CUgraphNode node, const struct kernel *kernel);

void graph_captured_reset(void);

#endif
