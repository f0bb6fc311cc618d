/* The table of allocations that kernels search: see tui_probe/engine/helper_values/allocation_bounds.py. */
#ifndef TUI_PROBE_ALLOCATION_TABLE_H
#define TUI_PROBE_ALLOCATION_TABLE_H

#include "cuda_abi.h"

struct pool;
struct variant;

/* The address of a table of what is allocated now, with the module variables of VARIANT, in the memory of its pool,
 * whose context is current. Returns why there is none, or NULL. A launch in flight may search an older one. */
const struct reason *allocation_table(const struct variant *variant, size_t n_globals, CUdeviceptr *table);

#endif
