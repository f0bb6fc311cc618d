/* A map from driver handles to our records. Reading takes no lock, for it is on the path of every
 * launch; writers exclude each other outside. A handle may be removed and used again; the table is as
 * large as the most handles at a time need. */
#ifndef TUI_PROBE_HANDLE_TABLE_H
#define TUI_PROBE_HANDLE_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct handle_slot {
    _Atomic(const void *) handle;
    _Atomic(void *) value;
};

struct handle_slots {
    struct handle_slots *older; /* outgrown, yet kept: a launching thread may still read it */
    size_t capacity;            /* a power of two */
    struct handle_slot slot[];
};

struct handle_table {
    _Atomic(struct handle_slots *) slots;
    size_t used; /* slots whose handle is set, dead ones included */
};

void *handle_table_get(struct handle_table *table, const void *handle);

/* VALUE replaces what the handle led to. False without memory. */
bool handle_table_put(struct handle_table *table, const void *handle, void *value);

/* Forgets every handle whose value MATCHES. */
void handle_table_remove(struct handle_table *table, bool (*matches)(const void *value, const void *wanted),
                         const void *wanted);

/* Forgets HANDLE if it leads to VALUE. */
void handle_table_drop(struct handle_table *table, const void *handle, const void *value);

#endif
