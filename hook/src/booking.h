/* What this process takes of the budgets of the run: for the records of a launch, and for files of any other kind. */
#ifndef TUI_PROBE_BOOKING_H
#define TUI_PROBE_BOOKING_H

#include <stdint.h>

struct kernel;
struct reason;

/* Books a result file of at most SIZE bytes for a launch of KERNEL. Returns why there is no room for it, or NULL. */
const struct reason *booking_take(struct kernel *kernel, uint64_t size);

/* There will be no such file after all. */
void booking_return(struct kernel *kernel, uint64_t size);

/* The file is written and takes ON_DISK bytes of blocks. */
void booking_settle(struct kernel *kernel, uint64_t size, uint64_t on_disk);

/* Why no folder with SIZE bytes should be made for a kernel that is not prepared yet; NULL if it may be. */
const struct reason *booking_folder(uint64_t size);

/* Counts all that is in the folder PATH now, itself included. A file that has another name,
 * too, was counted with that. */
void booking_count_folder(const char *path);

#endif
