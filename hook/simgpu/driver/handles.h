/* Handles that the program holds: opaque, checked at each use, and used again after they are destroyed, as the real
 * driver's are. The caller holds the driver's lock. */
#ifndef TUI_PROBE_SIMGPU_HANDLES_H
#define TUI_PROBE_SIMGPU_HANDLES_H

#include <stdbool.h>

enum handle_kind {
    HANDLE_UNUSED,
    HANDLE_CONTEXT,
    HANDLE_MODULE,
    HANDLE_LIBRARY,
    HANDLE_FUNCTION,
    HANDLE_KERNEL,
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_GRAPH,
    HANDLE_GRAPH_NODE,
    HANDLE_GRAPH_EXEC,
    HANDLE_MEMORY,
};

/* NULL when out of memory. */
void *handle_create(enum handle_kind kind, void *object);

/* The object behind a handle, or NULL if it is not a live handle of this kind. */
void *handle_object(enum handle_kind kind, const void *handle);

void handle_destroy(void *handle);

#endif
