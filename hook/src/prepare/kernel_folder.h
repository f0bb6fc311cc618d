/* The folders of kernels in the trace: the part of an image that the engine reads, and what they take of the
 * budgets. */
#ifndef TUI_PROBE_KERNEL_FOLDER_H
#define TUI_PROBE_KERNEL_FOLDER_H

#include <stdbool.h>

#include "image.h"
#include "reasons.h"
#include "reservations.h"

/* The lock of threads that prepare kernels. It is free while a thread waits for the engine, so that the engine has several
 * kernels to prepare. */
void kernel_folder_lock(void);
void kernel_folder_unlock(void);

/* Sets the mark of what is to be prepared, once no other thread has set it. The lock is held, but free meanwhile. */
void kernel_folder_claim(bool *in_preparation);
void kernel_folder_release(bool *in_preparation);

/* Writes the part of IMAGE that is KEPT (see image.h) to a file. Returns the reason of a failure, or NULL. */
const struct reason *kernel_folder_write_part(const struct image *image, unsigned kept, const char *path);

/* Writes the part of IMAGE that is KEPT to DIRECTORY, or links to a folder that has it. WRITTEN: it was
 * written now. Returns the reason of a failure, or NULL. The lock is held. */
const struct reason *kernel_folder_save(const char *directory, struct image *image, unsigned kept, bool *written);

/* Counts the bytes in DIRECTORY, which this takes, and again those of the one before; NULL: only those. The lock is
 * held. */
void kernel_folder_count(char *directory, bool has_image);

/* Takes the folder that was counted last, which is about to grow, and puts it back to count it again. The lock is held. */
struct budget_folder kernel_folder_take(void);
void kernel_folder_put(struct budget_folder folder);

/* Counts those of the last folder again, unless a kernel is being prepared: for the end of the program. */
void kernel_folder_count_last(void);

void kernel_folder_reset(void);

#endif
