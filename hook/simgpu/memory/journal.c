#include "journal.h"

#include <stdlib.h>
#include <string.h>

#include "given.h"
#include "heap.h"

/* Of more changes since the last launch, the state of all blocks is sent instead: so memory for them is bounded. */
enum { MAX_CHANGES = 1 << 16 };

struct change {
    enum journal_kind kind;
    uint64_t address, bytes;
};

static struct change *changes;
static unsigned n_changes;
static bool overflowed;

bool journal_is_on(void)
{
    const char *setting = given("TUI_PROBE_SIM_CHECK");
    return setting && strcmp(setting, "1") == 0;
}

static bool extends_last(enum journal_kind kind, uint64_t address)
{
    const struct change *last = n_changes ? &changes[n_changes - 1] : NULL;
    return last && kind == JOURNAL_INITIALISED && last->kind == kind && last->address + last->bytes == address;
}

void journal_add(enum journal_kind kind, uint64_t address, uint64_t bytes)
{
    if (overflowed || !journal_is_on())
        return;
    if (!changes)
        changes = malloc(MAX_CHANGES * sizeof *changes);
    if (changes && extends_last(kind, address)) {
        changes[n_changes - 1].bytes += bytes;
        return;
    }
    overflowed = !changes || n_changes == MAX_CHANGES;
    if (!overflowed)
        changes[n_changes++] = (struct change){kind, address, bytes};
}

static void put(struct message *request, enum journal_kind kind, uint64_t address, uint64_t bytes)
{
    message_put_u32(request, kind);
    message_put_u64(request, address);
    message_put_u64(request, bytes);
}

static unsigned count_used(const struct block *block)
{
    unsigned count = 0;
    for (; block; block = block->next)
        count += block->use != BLOCK_FREE;
    return count;
}

static void put_all(struct message *request, const struct block *const *lists, unsigned n_lists)
{
    unsigned count = 1;
    for (unsigned i = 0; i < n_lists; i++)
        count += 2 * count_used(lists[i]);
    message_put_u32(request, count);
    put(request, JOURNAL_FORGET, 0, 0);
    for (unsigned i = 0; i < n_lists; i++) {
        for (const struct block *block = lists[i]; block; block = block->next) {
            if (block->use == BLOCK_FREE)
                continue;
            put(request, JOURNAL_ALLOCATED, block->address, block->requested);
            put(request, JOURNAL_INITIALISED, block->address, block->requested);
        }
    }
}

void journal_put(struct message *request, const struct block *const *lists, unsigned n_lists)
{
    if (overflowed) {
        put_all(request, lists, n_lists);
    } else {
        message_put_u32(request, n_changes);
        for (unsigned i = 0; i < n_changes; i++)
            put(request, changes[i].kind, changes[i].address, changes[i].bytes);
    }
    n_changes = 0;
    overflowed = false;
}
