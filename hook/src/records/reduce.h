/* Reduction of the records of a map when they are saved: one for a warp's threads, for a block or for a launch,
 * whose fields are sums, least or largest values of those of the records that were saved. Not known here: where records
 * are. */
#ifndef TUI_PROBE_REDUCE_H
#define TUI_PROBE_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whose records become one. */
enum reduce_level { REDUCE_WARP = 1, REDUCE_BLOCK = 2, REDUCE_LAUNCH = 3 };

/* SPAN: from the least BASE to the largest BASE + FROM. SAME: the first record's, and whether others have another. */
enum reduce_operation { REDUCE_SUM, REDUCE_MIN, REDUCE_MAX, REDUCE_FIRST, REDUCE_SAME, REDUCE_SPAN };

/* A u64 or u32 in a record. */
struct place {
    uint32_t offset;
    bool wide;
};

struct reduced_field {
    enum reduce_operation operation;
    struct place to, from, base;
};

/* The engine's description of a map; constant. */
struct reduction {
    enum reduce_level level;
    uint32_t record; /* bytes that are left of a group */
    size_t n;
    struct reduced_field fields[];
};

/* Reads the text behind "reduce INDEX ": "LEVEL record BYTES FIELD …", a field "OPERATION:TO:FROM" or
 * "span:TO:FROM:BASE", a place "u64@OFFSET" or "u32@OFFSET"; of records of SIZE bytes. NULL if it is not that, or
 * without memory; else from malloc. */
struct reduction *reduction_parse(const char *text, uint32_t size);

/* The group at hand. */
struct reducing {
    const struct reduction *reduction;
    struct reduced {
        uint64_t value, end;
    } *fields;
    uint64_t saved; /* records that were */
    bool mixed; /* those of a SAME differ */
};

bool reduce_start(struct reducing *reducing, const struct reduction *reduction); /* false without memory */
void reduce_stop(struct reducing *reducing);

/* Records of a group, STRIDE bytes apart. MARKED: a u32 at MARK in each tells whether it was saved. */
struct slots {
    const uint8_t *bytes;
    size_t n, stride, mark;
    bool marked;
};

void reduce_begin(struct reducing *reducing);
void reduce_add(struct reducing *reducing, const struct slots *slots);

/* The result of the group: zeros if nothing was saved. */
void reduce_end(const struct reducing *reducing, uint8_t *record);

#endif
