#include "launch_log.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "control.h"
#include "kernel.h"
#include "launch.h"
#include "launch_counts.h"
#include "launch_lines.h"
#include "log_file.h"
#include "packed_log.h"
#include "schedule.h"
#include "settings.h"
#include "threads.h"

enum {
    CAPACITY = 16384, /* slots, a power of two */
    SLOT_BYTES = 64,
    MANY = CAPACITY / 16, /* slots in a round, after which the next comes soon */
    ROUND_MS = 5,
    SHORT_ROUND_MS = 1,
    SETTLE_MS = 1,
    ROUNDS_BEFORE_SLEEP = 20,
    INLINE_PARAMETERS = 1024
};

/* A cache line, for another core has read it last: the launching thread only writes it and waits for nothing.
 * A passed launch takes one slot; a probed or a sized one continues in the following slots. */
struct slot {
    _Atomic(uint32_t) published; /* position + 1 once the record is complete */
    uint32_t number;             /* low half */
    uint64_t time;
    struct shape_group *group;
    const struct reason *reason;
    uint32_t grid[3], block[3], shared;
    int32_t result;
};

_Static_assert(sizeof(struct slot) == SLOT_BYTES, "a record of a passed launch is one cache line");

/* The slots after the first one of a probed or a sized launch. */
struct tail_start {
    const struct kernel_probe *probe;
    uint64_t stream;
    const struct capacities *capacities;
    uint8_t *heap; /* the parameters, if there are too many bytes of them; else NULL */
    uint64_t size; /* of the parameters; 0 if they are not known */
};

struct tail {
    struct tail_start start;
    uint8_t bytes[INLINE_PARAMETERS];
};

static _Atomic(struct slot *) ring; /* NULL before the first launch */
static _Alignas(SLOT_BYTES) atomic_size_t claimed;
static atomic_size_t known_head; /* a past value of head, next to what launching threads write anyway */
static _Alignas(SLOT_BYTES) atomic_size_t head; /* first slot that is not free; moved by the reader only */
static _Alignas(SLOT_BYTES) atomic_bool asleep;
static atomic_bool any_lost;
static sem_t wake;

/* A tail leaves the first word of its slots unchanged: they too must not look like a published record. */
enum { TAIL_BYTES = SLOT_BYTES - sizeof(uint32_t) };

static size_t slots_for(size_t tail_bytes)
{
    return 1 + (tail_bytes + TAIL_BYTES - 1) / TAIL_BYTES;
}

/* True if N slots from POSITION on are free. Asks for the head, which is in another core's cache, only where
 * the past one does not tell. */
static bool is_free(size_t position, size_t n)
{
    if (position + n - atomic_load_explicit(&known_head, memory_order_acquire) <= CAPACITY)
        return true;
    size_t now = atomic_load_explicit(&head, memory_order_acquire);
    atomic_store_explicit(&known_head, now, memory_order_release);
    return position + n - now <= CAPACITY;
}

/* Takes N slots in a row at POSITION, if there are as many. */
static bool try_claim(size_t n, size_t *position)
{
    *position = atomic_load_explicit(&claimed, memory_order_relaxed);
    while (is_free(*position, n))
        if (atomic_compare_exchange_weak_explicit(&claimed, position, *position + n, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    return false;
}

static size_t flush(bool all);

/* The same, after waiting for the file if there are not. */
static size_t claim(size_t n)
{
    size_t position;
    while (!try_claim(n, &position))
        flush(false);
    return position;
}

bool launch_log_is_full(void)
{
    return !is_free(atomic_load_explicit(&claimed, memory_order_relaxed), slots_for(sizeof(struct tail)));
}

static struct slot *slot_at(size_t position)
{
    return &atomic_load_explicit(&ring, memory_order_acquire)[position % CAPACITY];
}

/* Of the tail that begins at POSITION, SIZE bytes from AT on. */
static void copy_tail(size_t position, size_t at, void *bytes, size_t size, bool into_ring)
{
    for (size_t done = 0, part; done < size; done += part) {
        const size_t in_slot = (at + done) % TAIL_BYTES;
        part = size - done < TAIL_BYTES - in_slot ? size - done : TAIL_BYTES - in_slot;
        char *slot = (char *)slot_at(position + (at + done) / TAIL_BYTES) + sizeof(uint32_t) + in_slot;
        if (into_ring)
            memcpy(slot, (char *)bytes + done, part);
        else
            memcpy((char *)bytes + done, slot, part);
    }
}

/* The reader's core has the line of the next record too: it comes to this one only while the driver is at work.
 * The builtin asks for that by default on aarch64 only; an x86 processor without the instruction ignores it. */
static inline void fetch_for_writing(const struct slot *slot)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*slot));
#else
    __builtin_prefetch(slot, 1);
#endif
}

static void publish(size_t position, const struct launch *launch, const struct reason *reason, int32_t result)
{
    struct slot *slot = slot_at(position);
    slot->number = (uint32_t)launch->number;
    slot->time = launch->time;
    slot->group = launch->group;
    slot->reason = reason;
    memcpy(slot->grid, launch->grid, sizeof slot->grid);
    memcpy(slot->block, launch->block, sizeof slot->block);
    slot->shared = launch->shared;
    slot->result = result;
    atomic_store_explicit(&slot->published, (uint32_t)(position + 1), memory_order_release);
    if (atomic_load_explicit(&asleep, memory_order_relaxed) && atomic_exchange(&asleep, false))
        sem_post(&wake);
    fetch_for_writing(slot_at(position + 1));
}

/* Launches without room are counted: no launch that the schedule leaves out waits for a disk. */
static void lose(struct shape_group *group)
{
    atomic_fetch_add_explicit(&group->lost, 1, memory_order_relaxed);
    atomic_store_explicit(&any_lost, true, memory_order_release);
}

void launch_log_passed(const struct launch *launch, const struct reason *reason, int32_t result)
{
    size_t position;
    if (!settings.scheduled)
        publish(claim(1), launch, reason, result);
    else if (try_claim(1, &position))
        publish(position, launch, reason, result);
    else if (launch_reason_has_run(reason))
        lose(launch->group);
}

/* True if the log gives the memory that the records of a launch with this reason would take. */
static bool has_size(const struct reason *reason)
{
    return reason->code == REASON_ONLY_SIZED || reason->code == REASON_ONLY_COUNTED;
}

static bool has_tail(const struct slot *slot)
{
    return !slot->reason || has_size(slot->reason);
}

/* The values are the program's own memory, valid only during the call: copied where they would not fit. */
static uint8_t *copy_on_heap(const struct kernel *kernel, void *const *values)
{
    uint8_t *copy = malloc(kernel->parameter_bytes), *to = copy;
    for (size_t i = 0; copy && i < kernel->n_parameters; to += kernel->parameters[i++].size)
        memcpy(to, values[i], kernel->parameters[i].size);
    return copy;
}

/* The calling thread has on its stack the part of the tail before the parameters. */
static void publish_with_tail(const struct launch *launch, const struct kernel_probe *probe, void *const *values,
                              const struct reason *reason, int32_t result)
{
    const struct kernel *kernel = probe->kernel;
    struct tail_start start = {probe, (uint64_t)(uintptr_t)launch->stream, launch->capacities, NULL, 0};
    size_t size = sizeof start, bytes = values && kernel->parameters_known ? kernel->parameter_bytes : 0;
    if (bytes > INLINE_PARAMETERS && !(start.heap = copy_on_heap(kernel, values)))
        bytes = 0;
    start.size = bytes;
    const size_t position = claim(slots_for(size + (start.heap ? 0 : bytes)));
    copy_tail(position + 1, 0, &start, size, true);
    for (size_t i = 0; i < kernel->n_parameters && bytes && !start.heap; size += kernel->parameters[i++].size)
        copy_tail(position + 1, size, values[i], kernel->parameters[i].size, true);
    publish(position, launch, reason, result);
}

void launch_log_probed(const struct launch *launch, const struct kernel_probe *probe, void *const *values,
                       int32_t result)
{
    publish_with_tail(launch, probe, values, NULL, result);
}

void launch_log_sized(const struct launch *launch, const struct kernel_probe *probe, const struct reason *reason,
                      int32_t result)
{
    publish_with_tail(launch, probe, NULL, reason, result);
}

static uint64_t number_of(const struct slot *slot)
{
    uint64_t count = launch_count(); /* less than 2^32 launches ago it was this one's turn */
    return count - (uint32_t)((uint32_t)count - slot->number);
}

/* Logs a launch by its group only, if it may; false if not. The first launch of a group has lines of its own. */
static bool is_packed(const struct slot *slot)
{
    return settings.scheduled && !has_tail(slot) && slot->result == 0 && slot->group->recorded &&
           control_log_is_open() && packed_log_add(slot->group, slot->reason, number_of(slot), slot->time);
}

/* Formats the record at POSITION; returns how many slots it has. The lock is held. */
static size_t format(size_t position, const struct slot *slot)
{
    static struct tail tail; /* a launching thread that waits for room formats, too, and may have no stack for it */
    if (is_packed(slot))
        return 1;
    struct launch_record record = {.time = slot->time, .kernel = slot->group->kernel, .reason = slot->reason};
    size_t size = 0;
    record.number = number_of(slot);
    memcpy(record.grid, slot->grid, sizeof record.grid);
    memcpy(record.block, slot->block, sizeof record.block);
    record.shared = slot->shared;
    record.result = slot->result;
    if (has_tail(slot)) {
        const struct tail_start *start = &tail.start;
        copy_tail(position + 1, 0, &tail, sizeof *start, false);
        size = sizeof *start + (start->heap ? 0 : start->size);
        copy_tail(position + 1, 0, &tail, size, false);
        record.probe = start->probe;
        record.stream = start->stream;
        record.capacities = start->capacities;
        record.parameters = !start->size ? NULL : start->heap ? start->heap : tail.bytes;
    }
    packed_log_end(); /* lines are in the order of launches */
    launch_lines(&record);
    slot->group->recorded = true;
    if (!record.probe)
        return 1;
    free(tail.start.heap);
    return slots_for(size);
}

/* Formats all records that wait; returns how many slots they had. */
static size_t drain(void)
{
    if (!atomic_load_explicit(&ring, memory_order_acquire))
        return 0;
    const size_t start = atomic_load_explicit(&head, memory_order_relaxed);
    size_t position = start;
    for (;;) {
        const struct slot *slot = slot_at(position);
        if (atomic_load_explicit(&slot->published, memory_order_acquire) != (uint32_t)(position + 1))
            break;
        position += format(position, slot);
        atomic_store_explicit(&head, position, memory_order_release);
    }
    if (atomic_exchange_explicit(&any_lost, false, memory_order_acquire))
        schedule_each(packed_log_lost);
    return position - start;
}

void launch_log_drain(void)
{
    drain();
    packed_log_end();
}

/* The same with the lock not held yet, and brings the lines to the file; a packed line may stay open unless ALL are to
 * be there. Returns how many slots were formatted. */
static size_t flush(bool all)
{
    log_file_lock();
    size_t n = drain();
    if (all)
        packed_log_end();
    else
        packed_log_end_old();
    log_file_write();
    log_file_unlock();
    return n;
}

static void sleep_ms(long milliseconds)
{
    const struct timespec time = {.tv_nsec = milliseconds * 1000000L};
    nanosleep(&time, NULL);
}

/* A launching thread does not wait for its record to reach this core before it looks whether to wake us, so
 * that the two may miss each other; looking again once it must have arrived closes the gap. */
static void sleep_until_launch(void)
{
    atomic_store(&asleep, true);
    sleep_ms(SETTLE_MS);
    if (!flush(true))
        while (sem_wait(&wake) != 0)
            ;
    atomic_store(&asleep, false);
}

static void *empty_ring(void *unused)
{
    (void)unused;
    for (int idle = 0;;) {
        size_t n = flush(false);
        idle = n ? 0 : idle + 1;
        if (idle < ROUNDS_BEFORE_SLEEP) {
            sleep_ms(n > MANY ? SHORT_ROUND_MS : ROUND_MS);
            continue;
        }
        sleep_until_launch();
        idle = 0;
    }
    return NULL;
}

bool launch_log_start(void)
{
    struct slot *slots = aligned_alloc(SLOT_BYTES, CAPACITY * sizeof *slots);
    if (!slots)
        return false;
    memset(slots, 0, CAPACITY * sizeof *slots);
    sem_init(&wake, 0, 0);
    atomic_store_explicit(&ring, slots, memory_order_release);
    return thread_start(empty_ring);
}

void launch_log_reset(void)
{
    launch_lines_reset();
    atomic_store(&ring, NULL);
    atomic_store(&head, 0);
    atomic_store(&known_head, 0);
    atomic_store(&claimed, 0);
    atomic_store(&asleep, false);
    atomic_store(&any_lost, false);
}
