/* The memory of this process that grows with what the program does: records that wait to be written, and copies of
 * images with PTX. One limit for all of it. */
#ifndef TUI_PROBE_HOST_MEMORY_H
#define TUI_PROBE_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Uses of host memory. Copies of images, which are kept as long as the program keeps the images, get half at most. */
enum host_use { HOST_RECORDS, HOST_IMAGES, HOST_USES };

/* False where it would be more than the limit. */
bool host_memory_take(enum host_use use, size_t size);
void host_memory_give(enum host_use use, size_t size);

/* In a forked child, which has the images and not the records. */
void host_memory_reset(void);

#endif
