#include "budget.h"

/* The first launch of a kernel may take 1/8 of what is left, so that each of many kernels has a result; later ones 1/32
 * and at most 64 MiB. BLOCK_BYTES and ENTRY_BYTES: a file system gives a file whole blocks, and a name in a directory. */
enum { FIRST_PART = 8, LATER_PART = 32, LATER_BYTES = 64 << 20, BLOCK_BYTES = 4096, ENTRY_BYTES = 64 };

/* A launch takes a file or none: the last ones are not left over because they are few. */
static uint64_t part_of_files(uint64_t left, unsigned part)
{
    return left && left < part ? 1 : left / part;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The bytes that the kernel may still take so that as much is left as it holds. */
static uint64_t quota(uint64_t left, uint64_t held)
{
    return left > held ? (left - held) / 2 : 0;
}

struct budget_amount budget_share(struct budget_amount left, struct budget_amount held, bool first)
{
    const unsigned part = first ? FIRST_PART : LATER_PART;
    struct budget_amount share = {left.bytes / part, part_of_files(left.files, part)};
    if (!first)
        share.bytes = least(share.bytes, LATER_BYTES);
    share.bytes = least(share.bytes, quota(left.bytes, held.bytes));
    share.files = least(share.files, part_of_files(left.files > held.files ? left.files - held.files : 0, 2));
    return share;
}

uint64_t budget_disk_bytes(uint64_t size)
{
    return (size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES + ENTRY_BYTES;
}
