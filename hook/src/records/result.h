/* Result files: what the probes of one launch wrote, one file per launch. */
#ifndef TUI_PROBE_RESULT_H
#define TUI_PROBE_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel_probe;
struct piece;
struct reason;

/* The source of the records of a piece. */
struct result_source {
    /* SIZE bytes (at most the window) at OFFSET of the chunk; NULL on failure. */
    const void *(*read)(void *argument, size_t offset, size_t size);
    void *argument;
    size_t window;
};

/* A name for the result of a launch at TIME: microseconds since the zero of the trace, never twice the same. */
uint64_t result_stamp(uint64_t time);

/* Reserves a launch's file, of layout_saved_size(), against the budgets of the run. Returns why it must not be, or
 * NULL. */
const struct reason *result_reserve(const struct kernel_probe *probe, size_t saved_size);

/* The most that the file of a launch may have behind its header, by its share of what is left. */
size_t result_room(const struct kernel_probe *probe);

/* There will be no file after all. */
void result_unreserve(const struct kernel_probe *probe, size_t saved_size);

/* Writes the file and logs it. False if it failed. */
bool result_write(const struct piece *piece, const struct result_source *source);

/* It will not be written: what is reserved for it is free. */
void result_drop(const struct piece *piece);

/* The program ends and waits no longer: nothing more is written, not even what is under way. */
void result_give_up(void);

/* Files written so far. */
uint64_t result_saved_count(void);

/* The reason why a result was not written that its source did not refuse. */
const struct reason *result_stopped(void);

/* Results are not saved from the start where the disk is nearly full. */
void result_start(void);

/* True if results are not saved until the disk has room again; looks whether it has. */
bool result_paused(void);

#endif
