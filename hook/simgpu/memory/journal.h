/* Changes of device memory since the last launch, for the checks of the server (TUI_PROBE_SIM_CHECK=1). The caller
 * holds the driver's lock. */
#ifndef TUI_PROBE_SIMGPU_JOURNAL_H
#define TUI_PROBE_SIMGPU_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "message.h"

/* As in tui_probe/simgpu/protocol.py. */
enum journal_kind { JOURNAL_ALLOCATED = 1, JOURNAL_INITIALISED = 2, JOURNAL_FREED = 3, JOURNAL_FORGET = 4 };

struct block;

/* True if kernels are checked. */
bool journal_is_on(void);

/* Adds a change of a range; does nothing where kernels are not checked. */
void journal_add(enum journal_kind kind, uint64_t address, uint64_t bytes);

/* Puts the changes into a request: u32 count, each: u32 kind, u64 address, u64 bytes. Then there are none. `lists` are
 * the first blocks of `n_lists` heaps: where changes were lost, all of these blocks count as initialised. */
void journal_put(struct message *request, const struct block *const *lists, unsigned n_lists);

#endif
