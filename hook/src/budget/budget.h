/* The rule by which one launch gets a part of what is left for the results of a run. Where the user has said nothing,
 * no launch and no kernel takes all: the first launch of a kernel gets more than later ones, and a kernel never more
 * than it leaves to others. */
#ifndef TUI_PROBE_BUDGET_H
#define TUI_PROBE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes on disk, or files. */
struct budget_amount {
    uint64_t bytes, files;
};

/* The most that a launch may take of LEFT, where its kernel holds HELD already. */
struct budget_amount budget_share(struct budget_amount left, struct budget_amount held, bool first);

/* Bytes on disk of a file of SIZE, with its entry in a folder. */
uint64_t budget_disk_bytes(uint64_t size);

#endif
