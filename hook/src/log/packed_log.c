#include "packed_log.h"

#include "clock.h"
#include "control.h"
#include "log_file.h"
#include "reasons.h"
#include "schedule.h"

typedef unsigned long long ull;

/* LINE_NS: a line that still collects launches is written after 100 ms, so that a screen that draws twice a second
 * never shows counts that are a frame old. */
enum { LINE_BYTES = 1024, ITEM_BYTES = 128, LINE_NS = 100000000, MOST_REASONS = 256, UNNUMBERED = -1 };

/* The line that is being filled, and the launches at its end that make one item. */
static struct {
    char items[LINE_BYTES];
    size_t used;
    uint64_t first, time, last_time;
    const struct shape_group *group; /* NULL: there is no line */
    const struct reason *reason;
    uint64_t next, times; /* the number of the launch after the last; how many there are of the last kind */
} line;

static const struct reason *reasons[MOST_REASONS];
static int n_reasons;

static void put_number(uint64_t value)
{
    char digits[20];
    size_t n = 0;
    do
        digits[n++] = (char)('0' + value % 10);
    while (value /= 10);
    while (n)
        line.items[line.used++] = digits[--n];
}

static void put(char before, uint64_t value)
{
    line.items[line.used++] = before;
    put_number(value);
}

void packed_log_group(struct shape_group *group)
{
    const struct shape *s = &group->shape;
    if (group->named)
        return;
    group->named = true;
    log_file_append("[key] %u kernel %u ", group->id, group->kernel->index);
    if (group->shares) {
        log_file_append("blocks %llu %llu\n", 1ull << group->order, (2ull << group->order) - 1);
        return;
    }
    log_file_append("grid %u %u %u block %u %u %u shared %u", s->grid[0], s->grid[1], s->grid[2], s->block[0],
                    s->block[1], s->block[2], s->shared);
    if (s->cluster[0])
        log_file_append(" cluster %u %u %u", s->cluster[0], s->cluster[1], s->cluster[2]);
    log_file_append("\n");
}

/* The number that the log has given REASON, or gives it now. */
static int number_of(const struct reason *reason)
{
    for (int i = 0; i < n_reasons; i++)
        if (reasons[i] == reason)
            return i;
    if (n_reasons == MOST_REASONS)
        return UNNUMBERED;
    log_file_append("[reason] %d %s\n", n_reasons, reason->written);
    reasons[n_reasons] = reason;
    return n_reasons++;
}

static bool is_default(const struct reason *reason)
{
    return reason == reason(NOT_SAMPLED);
}

static void end_item(void)
{
    put(' ', line.group->id);
    if (!is_default(line.reason))
        put('/', (uint64_t)number_of(line.reason));
    if (line.times > 1)
        put('x', line.times);
    line.times = 0;
}

/* The next item begins with launch NUMBER. */
static void put_jump(uint64_t number)
{
    line.items[line.used++] = ' ';
    put('@', number);
}

void packed_log_end(void)
{
    if (!line.group)
        return;
    end_item();
    log_file_append("[passed] %llu %llu %llu%.*s\n", (ull)line.first, (ull)line.time, (ull)(line.last_time - line.time),
                    (int)line.used, line.items);
    line.group = NULL;
}

static bool is_old(uint64_t now)
{
    return now > line.time && now - line.time > LINE_NS;
}

void packed_log_end_old(void)
{
    if (line.group && is_old(clock_now()))
        packed_log_end();
}

static void begin(uint64_t number, uint64_t time)
{
    line.used = 0;
    line.first = line.next = number;
    line.time = line.last_time = time;
    line.times = 0;
}

bool packed_log_add(struct shape_group *group, const struct reason *reason, uint64_t number, uint64_t time)
{
    packed_log_group(group);
    if (!is_default(reason) && number_of(reason) == UNNUMBERED)
        return false;
    if (line.group && (line.used > LINE_BYTES - ITEM_BYTES || is_old(time)))
        packed_log_end();
    if (!line.group)
        begin(number, time);
    else if (group != line.group || reason != line.reason || number != line.next)
        end_item();
    if (number != line.next)
        put_jump(number);
    line.group = group;
    line.reason = reason;
    line.next = number + 1;
    line.times++;
    line.last_time = time > line.last_time ? time : line.last_time;
    return true;
}

void packed_log_lost(struct shape_group *group)
{
    const uint64_t lost = atomic_exchange_explicit(&group->lost, 0, memory_order_relaxed);
    if (!lost)
        return;
    if (!control_log_is_open()) {
        atomic_fetch_add(&control->log_bytes.refused, lost);
        atomic_fetch_add(&group->kernel->unlisted, lost);
        return;
    }
    packed_log_group(group);
    log_file_append("[passed] lost %u %llu\n", group->id, (ull)lost);
}

void packed_log_reset(void)
{
    line.group = NULL;
    n_reasons = 0;
}
