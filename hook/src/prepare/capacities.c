#include "capacities.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Records per slot of a map without a cap. A kernel whose records do not fit is measured, and its next launch has room
 * in powers of two, so that few kinds of chunks are needed. Fewer than LEAST_BLOCKS sampled blocks say nothing of a
 * grid. */
enum { ESTIMATE = 64, LARGEST = 1 << 20, LEAST_BLOCKS = 16 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static size_t bytes_of(const struct kernel_probe *probe)
{
    return probe->n_maps * sizeof(uint32_t);
}

static struct capacities *copy(const struct kernel_probe *probe, const struct capacities *from)
{
    struct capacities *made = malloc(sizeof *made + bytes_of(probe));
    if (made)
        memcpy(made, from, sizeof *made + bytes_of(probe));
    return made;
}

bool capacities_begin(struct kernel_probe *probe)
{
    for (size_t i = 0; i < probe->n_maps; i++)
        probe->dynamic = probe->dynamic || !probe->maps[i].cap;
    struct capacities *first = calloc(1, sizeof *first + bytes_of(probe));
    if (!first)
        return false;
    for (size_t i = 0; i < probe->n_maps; i++)
        first->of[i] = probe->maps[i].cap ? probe->maps[i].cap : ESTIMATE;
    atomic_store(&probe->capacities, first);
    return true;
}

static bool fits(const struct kernel_probe *probe, const struct capacities *capacities, const uint32_t grid[3],
                 const uint32_t block[3], size_t limit)
{
    size_t size;
    return layout_device_size(probe, capacities, grid, block, &size) && size <= limit;
}

static bool halve(const struct kernel_probe *probe, struct capacities *capacities)
{
    bool any = false;
    for (size_t i = 0; i < probe->n_maps; i++)
        if (!probe->maps[i].cap && capacities->of[i] > 1) {
            capacities->of[i] /= 2;
            any = true;
        }
    return any;
}

static bool are_same(const struct kernel_probe *probe, const struct capacities *a, const struct capacities *b)
{
    return a->sample == b->sample && a->reduced == b->reduced && !memcmp(a->of, b->of, bytes_of(probe));
}

/* The same values as of an earlier launch, or these from now on: the list stays short. */
static const struct capacities *remember(struct kernel_probe *probe, struct capacities *wanted)
{
    struct capacities *current = atomic_load(&probe->capacities);
    for (struct capacities *c = current; c; c = c->next)
        if (are_same(probe, c, wanted)) {
            free(wanted);
            return c;
        }
    wanted->next = current->next;
    current->next = wanted;
    return wanted;
}

const struct capacities *capacities_choose(struct kernel_probe *probe, const uint32_t grid[3], const uint32_t block[3],
                                           size_t limit)
{
    struct capacities *current = atomic_load_explicit(&probe->capacities, memory_order_acquire);
    if (!probe->dynamic || fits(probe, current, grid, block, limit))
        return current;
    const struct capacities *chosen = NULL;
    pthread_mutex_lock(&mutex);
    struct capacities *smaller = copy(probe, current);
    if (smaller) {
        while (!fits(probe, smaller, grid, block, limit) && halve(probe, smaller))
            ;
        chosen = remember(probe, smaller);
    }
    pthread_mutex_unlock(&mutex);
    return chosen;
}

const struct capacities *capacities_counting(struct kernel_probe *probe)
{
    const struct capacities *counting = NULL;
    pthread_mutex_lock(&mutex);
    struct capacities *none = copy(probe, atomic_load(&probe->capacities));
    for (size_t i = 0; none && i < probe->n_maps; i++)
        if (!probe->maps[i].cap)
            none->of[i] = 0;
    if (none)
        counting = remember(probe, none);
    pthread_mutex_unlock(&mutex);
    return counting;
}

const struct capacities *capacities_reduced(struct kernel_probe *probe, const struct capacities *capacities)
{
    bool any = false;
    for (size_t i = 0; i < probe->n_maps; i++)
        any = any || probe->maps[i].reduction;
    struct capacities *reduced = probe->detail && any ? copy(probe, capacities) : NULL;
    if (!reduced)
        return NULL;
    reduced->reduced = true;
    pthread_mutex_lock(&mutex);
    const struct capacities *remembered = remember(probe, reduced);
    pthread_mutex_unlock(&mutex);
    return remembered;
}

/* The bytes that a launch may take. */
struct room {
    size_t device, saved;
};

/* By halves, so that launches of many shapes have few numbers of blocks. */
static bool fewer_blocks_fit(const struct kernel_probe *probe, struct capacities *capacities, const uint32_t grid[3],
                             const uint32_t block[3], const struct room *room)
{
    const uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    capacities->sample = 1;
    while (capacities->sample < blocks)
        capacities->sample *= 2;
    while ((capacities->sample /= 2) >= LEAST_BLOCKS) {
        size_t saved;
        if (fits(probe, capacities, grid, block, room->device) &&
            layout_saved_size(probe, capacities, grid, block, &saved) && saved <= room->saved)
            return true;
    }
    return false;
}

/* Of few blocks with many records some records are left out. */
static bool shrink(const struct kernel_probe *probe, struct capacities *capacities, const uint32_t grid[3],
                   const uint32_t block[3], const struct room *room)
{
    do
        if (fewer_blocks_fit(probe, capacities, grid, block, room))
            return true;
    while (halve(probe, capacities));
    return false;
}

const struct capacities *capacities_sample(struct kernel_probe *probe, const uint32_t grid[3], const uint32_t block[3],
                                           size_t most_device, size_t most_saved)
{
    const struct room room = {most_device, most_saved};
    const struct capacities *chosen = NULL;
    pthread_mutex_lock(&mutex);
    struct capacities *smaller = copy(probe, atomic_load(&probe->capacities));
    if (smaller && shrink(probe, smaller, grid, block, &room))
        chosen = remember(probe, smaller);
    else
        free(smaller);
    pthread_mutex_unlock(&mutex);
    return chosen;
}

bool capacities_grow(struct kernel_probe *probe, size_t map, uint64_t attempts)
{
    uint32_t wanted = ESTIMATE;
    bool grown = false;
    while (wanted < attempts && wanted < LARGEST)
        wanted *= 2;
    pthread_mutex_lock(&mutex);
    struct capacities *current = atomic_load(&probe->capacities);
    if (!probe->maps[map].cap && wanted > current->of[map]) {
        struct capacities *larger = copy(probe, current);
        if (larger) {
            larger->of[map] = wanted;
            larger->next = current;
            atomic_store_explicit(&probe->capacities, larger, memory_order_release);
            grown = true;
        }
    }
    pthread_mutex_unlock(&mutex);
    return grown;
}

void capacities_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
}
