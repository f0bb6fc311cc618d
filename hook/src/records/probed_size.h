/* How much device memory the records of a launch take. */
#ifndef TUI_PROBE_PROBED_SIZE_H
#define TUI_PROBE_PROBED_SIZE_H

#include "launch.h"

/* Settles the number of records of a launch, and the SIZE of them all in bytes. Returns why it cannot be probed, or
 * NULL. */
const struct reason *probed_size(struct launch *launch, struct probing *probing, struct variant *variant, size_t *size);

/* What one launch may take where that can be chosen: another finds room beside it. */
size_t probed_memory(const struct variant *variant);

#endif
