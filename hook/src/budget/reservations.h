/* Reservations of this process in the budgets of the run: for the records of a launch, and for files of any
 * other kind. */
#ifndef TUI_PROBE_RESERVATIONS_H
#define TUI_PROBE_RESERVATIONS_H

#include <stdbool.h>
#include <stdint.h>

struct kernel;
struct reason;

/* Reserves a result file of at most SIZE bytes for a launch of KERNEL. Returns why there is no room for it, or NULL. */
const struct reason *budget_reserve(struct kernel *kernel, uint64_t size);

/* There will be no such file after all. */
void budget_release(struct kernel *kernel, uint64_t size);

/* The file is written and takes ON_DISK bytes of blocks. */
void budget_commit(struct kernel *kernel, uint64_t size, uint64_t on_disk);

/* The reason why no folder should be made with an image of SIZE bytes and what the engine makes of it; NULL if it may
 * be. */
const struct reason *budget_refuses_folder(uint64_t size);

/* The most bytes on disk that a launch of KERNEL may take by its share of what is left. */
uint64_t budget_room(const struct kernel *kernel);

/* A launch has passed for REASON: counts it, if it is one of these. */
void budget_refused(const struct reason *reason);

/* Counts what is in the folder now, itself included, instead of what was counted before. A file that has another
 * name, too, was counted with that; not so the image, if it was written here first. */
struct budget_folder {
    char *path;       /* NULL: there is none */
    bool has_image;   /* original.bin counts here */
    uint64_t counted; /* bytes so far */
};

void budget_count_folder(struct budget_folder *folder);

/* Forgets the budgets that were reported as reached, in a forked child. */
void budget_reset(void);

#endif
