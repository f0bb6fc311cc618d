#include "capacities.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ESTIMATE = 64, LARGEST = 1 << 20 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static size_t bytes_of(const struct kernel *kernel)
{
    return kernel->n_maps * sizeof(uint32_t);
}

static struct capacities *copy(const struct kernel *kernel, const uint32_t *values)
{
    struct capacities *made = malloc(sizeof *made + bytes_of(kernel));
    if (made)
        memcpy(made->of, values, bytes_of(kernel));
    return made;
}

bool capacities_begin(struct kernel *kernel)
{
    for (size_t i = 0; i < kernel->n_maps; i++)
        kernel->dynamic = kernel->dynamic || !kernel->maps[i].cap;
    if (!kernel->dynamic)
        return true;
    struct capacities *first = malloc(sizeof *first + bytes_of(kernel));
    if (!first)
        return false;
    for (size_t i = 0; i < kernel->n_maps; i++)
        first->of[i] = kernel->maps[i].cap ? kernel->maps[i].cap : ESTIMATE;
    first->next = NULL;
    atomic_store(&kernel->capacities, first);
    return true;
}

static bool fits(const struct kernel *kernel, const struct capacities *capacities, const uint32_t grid[3],
                 const uint32_t block[3], size_t limit)
{
    size_t size;
    return layout_device_size(kernel, capacities, grid, block, &size) && size <= limit / 2;
}

static bool halve(const struct kernel *kernel, struct capacities *capacities)
{
    bool any = false;
    for (size_t i = 0; i < kernel->n_maps; i++)
        if (!kernel->maps[i].cap && capacities->of[i] > 1) {
            capacities->of[i] /= 2;
            any = true;
        }
    return any;
}

/* The same values as of an earlier launch, or these from now on: the list stays short. */
static const struct capacities *remember(struct kernel *kernel, struct capacities *wanted)
{
    struct capacities *current = atomic_load(&kernel->capacities);
    for (struct capacities *c = current; c; c = c->next)
        if (!memcmp(c->of, wanted->of, bytes_of(kernel))) {
            free(wanted);
            return c;
        }
    wanted->next = current->next;
    current->next = wanted;
    return wanted;
}

const struct capacities *capacities_choose(struct kernel *kernel, const uint32_t grid[3], const uint32_t block[3],
                                           size_t limit)
{
    struct capacities *current = atomic_load_explicit(&kernel->capacities, memory_order_acquire);
    if (!current || fits(kernel, current, grid, block, limit))
        return current;
    const struct capacities *found = NULL;
    pthread_mutex_lock(&mutex);
    struct capacities *smaller = copy(kernel, current->of);
    if (smaller) {
        while (!fits(kernel, smaller, grid, block, limit) && halve(kernel, smaller))
            ;
        found = remember(kernel, smaller);
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

void capacities_grow(struct kernel *kernel, size_t map, uint64_t attempts)
{
    uint32_t wanted = ESTIMATE;
    while (wanted < attempts && wanted < LARGEST)
        wanted *= 2;
    pthread_mutex_lock(&mutex);
    struct capacities *current = atomic_load(&kernel->capacities);
    if (!kernel->maps[map].cap && wanted > current->of[map]) {
        struct capacities *larger = copy(kernel, current->of);
        if (larger) {
            larger->of[map] = wanted;
            larger->next = current;
            atomic_store_explicit(&kernel->capacities, larger, memory_order_release);
        }
    }
    pthread_mutex_unlock(&mutex);
}

void capacities_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
}
