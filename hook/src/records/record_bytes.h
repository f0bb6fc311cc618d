/* The device memory that the records of a launch take. */
#ifndef TUI_PROBE_RECORD_BYTES_H
#define TUI_PROBE_RECORD_BYTES_H

#include "launch.h"

/* Settles the number of records of a launch, and the SIZE of them all in bytes. Returns why it cannot be probed, or
 * NULL. */
const struct reason *record_bytes(struct launch *launch, struct kernel_probe *probe, struct variant *variant,
                                  size_t *size);

/* The bytes that one launch may take where that can be chosen: another still finds room. */
size_t record_bytes_limit(const struct variant *variant);

#endif
