#include "launch_log.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "event_log.h"
#include "launch_lines.h"
#include "threads.h"

enum { CAPACITY = 4096, ROUND_MS = 5, ROUNDS_BEFORE_SLEEP = 20 };

/* A slot is free for position p when its sequence is p, and holds a record when it is p + 1. */
struct slot {
    atomic_size_t sequence;
    struct launch_record record;
};

static _Atomic(struct slot *) ring; /* NULL before the first launch */
static atomic_size_t tail;
static size_t head;
static atomic_bool asleep;
static sem_t wake;

static struct slot *claim(size_t *position)
{
    struct slot *slots = atomic_load_explicit(&ring, memory_order_acquire);
    *position = atomic_load_explicit(&tail, memory_order_relaxed);
    for (;;) {
        struct slot *slot = &slots[*position % CAPACITY];
        ptrdiff_t ahead =
            (ptrdiff_t)(atomic_load_explicit(&slot->sequence, memory_order_acquire) - *position);
        if (ahead < 0)
            return NULL;
        if (ahead > 0)
            *position = atomic_load_explicit(&tail, memory_order_relaxed);
        else if (atomic_compare_exchange_weak(&tail, position, *position + 1))
            return slot;
    }
}

void launch_log_push(const struct launch_record *record)
{
    size_t position;
    struct slot *slot;
    while (!(slot = claim(&position)))
        event_log_flush();
    size_t used = offsetof(struct launch_record, parameters_inline);
    if (!record->parameters)
        used += record->parameter_bytes;
    memcpy(&slot->record, record, used);
    atomic_store(&slot->sequence, position + 1);
    if (atomic_load(&asleep) && atomic_exchange(&asleep, false))
        sem_post(&wake);
}

bool launch_log_drain(void)
{
    struct slot *slots = atomic_load_explicit(&ring, memory_order_acquire);
    bool any = false;
    for (; slots; any = true) {
        struct slot *slot = &slots[head % CAPACITY];
        if (atomic_load(&slot->sequence) != head + 1)
            break;
        launch_lines(&slot->record);
        free(slot->record.parameters);
        atomic_store_explicit(&slot->sequence, head + CAPACITY, memory_order_release);
        head++;
    }
    return any;
}

static void *empty_ring(void *unused)
{
    (void)unused;
    const struct timespec round = {.tv_nsec = ROUND_MS * 1000000L};
    for (int idle = 0;;) {
        idle = event_log_flush() ? 0 : idle + 1;
        if (idle < ROUNDS_BEFORE_SLEEP) {
            nanosleep(&round, NULL);
            continue;
        }
        atomic_store(&asleep, true);
        if (!event_log_flush())
            while (sem_wait(&wake) != 0)
                ;
        atomic_store(&asleep, false);
        idle = 0;
    }
    return NULL;
}

bool launch_log_start(void)
{
    struct slot *slots = calloc(CAPACITY, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < CAPACITY; i++)
        atomic_init(&slots[i].sequence, i);
    sem_init(&wake, 0, 0);
    atomic_store_explicit(&ring, slots, memory_order_release);
    return thread_start(empty_ring);
}

void launch_log_reset(void)
{
    atomic_store(&ring, NULL);
    head = 0;
    atomic_store(&tail, 0);
    atomic_store(&asleep, false);
}
