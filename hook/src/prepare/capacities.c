#include "capacities.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ESTIMATE = 64, LARGEST = 1 << 20, LEAST_BLOCKS = 16 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static size_t bytes_of(const struct probing *probing)
{
    return probing->n_maps * sizeof(uint32_t);
}

static struct capacities *copy(const struct probing *probing, const struct capacities *from)
{
    struct capacities *made = malloc(sizeof *made + bytes_of(probing));
    if (made)
        memcpy(made, from, sizeof *made + bytes_of(probing));
    return made;
}

bool capacities_begin(struct probing *probing)
{
    for (size_t i = 0; i < probing->n_maps; i++)
        probing->dynamic = probing->dynamic || !probing->maps[i].cap;
    struct capacities *first = calloc(1, sizeof *first + bytes_of(probing));
    if (!first)
        return false;
    for (size_t i = 0; i < probing->n_maps; i++)
        first->of[i] = probing->maps[i].cap ? probing->maps[i].cap : ESTIMATE;
    atomic_store(&probing->capacities, first);
    return true;
}

static bool fits(const struct probing *probing, const struct capacities *capacities, const uint32_t grid[3],
                 const uint32_t block[3], size_t limit)
{
    size_t size;
    return layout_device_size(probing, capacities, grid, block, &size) && size <= limit;
}

static bool halve(const struct probing *probing, struct capacities *capacities)
{
    bool any = false;
    for (size_t i = 0; i < probing->n_maps; i++)
        if (!probing->maps[i].cap && capacities->of[i] > 1) {
            capacities->of[i] /= 2;
            any = true;
        }
    return any;
}

static bool are_same(const struct probing *probing, const struct capacities *a, const struct capacities *b)
{
    return a->sample == b->sample && a->reduced == b->reduced && !memcmp(a->of, b->of, bytes_of(probing));
}

/* The same values as of an earlier launch, or these from now on: the list stays short. */
static const struct capacities *remember(struct probing *probing, struct capacities *wanted)
{
    struct capacities *current = atomic_load(&probing->capacities);
    for (struct capacities *c = current; c; c = c->next)
        if (are_same(probing, c, wanted)) {
            free(wanted);
            return c;
        }
    wanted->next = current->next;
    current->next = wanted;
    return wanted;
}

const struct capacities *capacities_choose(struct probing *probing, const uint32_t grid[3], const uint32_t block[3],
                                           size_t limit)
{
    struct capacities *current = atomic_load_explicit(&probing->capacities, memory_order_acquire);
    if (!probing->dynamic || fits(probing, current, grid, block, limit))
        return current;
    const struct capacities *found = NULL;
    pthread_mutex_lock(&mutex);
    struct capacities *smaller = copy(probing, current);
    if (smaller) {
        while (!fits(probing, smaller, grid, block, limit) && halve(probing, smaller))
            ;
        found = remember(probing, smaller);
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

const struct capacities *capacities_counting(struct probing *probing)
{
    const struct capacities *found = NULL;
    pthread_mutex_lock(&mutex);
    struct capacities *none = copy(probing, atomic_load(&probing->capacities));
    for (size_t i = 0; none && i < probing->n_maps; i++)
        if (!probing->maps[i].cap)
            none->of[i] = 0;
    if (none)
        found = remember(probing, none);
    pthread_mutex_unlock(&mutex);
    return found;
}

const struct capacities *capacities_reduced(struct probing *probing, const struct capacities *capacities)
{
    bool any = false;
    for (size_t i = 0; i < probing->n_maps; i++)
        any = any || probing->maps[i].reduction;
    struct capacities *reduced = probing->detail && any ? copy(probing, capacities) : NULL;
    if (!reduced)
        return NULL;
    reduced->reduced = true;
    pthread_mutex_lock(&mutex);
    const struct capacities *found = remember(probing, reduced);
    pthread_mutex_unlock(&mutex);
    return found;
}

/* What a launch may take. */
struct room {
    size_t device, saved;
};

/* By halves, so that launches of many shapes have few numbers of blocks. */
static bool fewer_blocks_fit(const struct probing *probing, struct capacities *capacities, const uint32_t grid[3],
                             const uint32_t block[3], const struct room *room)
{
    const uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    capacities->sample = 1;
    while (capacities->sample < blocks)
        capacities->sample *= 2;
    while ((capacities->sample /= 2) >= LEAST_BLOCKS) {
        size_t saved;
        if (fits(probing, capacities, grid, block, room->device) &&
            layout_saved_size(probing, capacities, grid, block, &saved) && saved <= room->saved)
            return true;
    }
    return false;
}

/* Of few blocks with many records some records are left out. */
static bool shrink(const struct probing *probing, struct capacities *capacities, const uint32_t grid[3],
                   const uint32_t block[3], const struct room *room)
{
    do
        if (fewer_blocks_fit(probing, capacities, grid, block, room))
            return true;
    while (halve(probing, capacities));
    return false;
}

const struct capacities *capacities_sample(struct probing *probing, const uint32_t grid[3], const uint32_t block[3],
                                           size_t most_device, size_t most_saved)
{
    const struct room room = {most_device, most_saved};
    const struct capacities *found = NULL;
    pthread_mutex_lock(&mutex);
    struct capacities *smaller = copy(probing, atomic_load(&probing->capacities));
    if (smaller && shrink(probing, smaller, grid, block, &room))
        found = remember(probing, smaller);
    else
        free(smaller);
    pthread_mutex_unlock(&mutex);
    return found;
}

bool capacities_grow(struct probing *probing, size_t map, uint64_t attempts)
{
    uint32_t wanted = ESTIMATE;
    bool grown = false;
    while (wanted < attempts && wanted < LARGEST)
        wanted *= 2;
    pthread_mutex_lock(&mutex);
    struct capacities *current = atomic_load(&probing->capacities);
    if (!probing->maps[map].cap && wanted > current->of[map]) {
        struct capacities *larger = copy(probing, current);
        if (larger) {
            larger->of[map] = wanted;
            larger->next = current;
            atomic_store_explicit(&probing->capacities, larger, memory_order_release);
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
