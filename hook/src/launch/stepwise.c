#include "stepwise.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "registry.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What is set for FUNCTION, made on first sight; NULL without memory. The caller holds the lock. */
static struct stepwise *of(CUfunction function)
{
    struct instance *instance = registry_find(function);
    if (!instance)
        instance = registry_adopt(function);
    if (instance && !instance->stepwise)
        instance->stepwise = calloc(1, sizeof *instance->stepwise);
    return instance ? instance->stepwise : NULL;
}

void stepwise_note_block(CUfunction function, int x, int y, int z)
{
    pthread_mutex_lock(&lock);
    struct stepwise *set = of(function);
    if (set) {
        set->block[0] = (uint32_t)x;
        set->block[1] = (uint32_t)y;
        set->block[2] = (uint32_t)z;
    }
    pthread_mutex_unlock(&lock);
}

void stepwise_note_shared(CUfunction function, unsigned int bytes)
{
    pthread_mutex_lock(&lock);
    struct stepwise *set = of(function);
    if (set)
        set->shared = bytes;
    pthread_mutex_unlock(&lock);
}

void stepwise_note_size(CUfunction function, unsigned int bytes)
{
    pthread_mutex_lock(&lock);
    struct stepwise *set = of(function);
    if (set)
        set->size = bytes;
    pthread_mutex_unlock(&lock);
}

void stepwise_note_values(CUfunction function, int offset, const void *values, unsigned int bytes)
{
    if (!values || offset < 0 || offset > STEPWISE_BYTES || bytes > STEPWISE_BYTES - (unsigned int)offset)
        return;
    pthread_mutex_lock(&lock);
    struct stepwise *set = of(function);
    if (set)
        memcpy(set->values + offset, values, bytes);
    pthread_mutex_unlock(&lock);
}

struct stepwise *stepwise_get(CUfunction function)
{
    struct stepwise *copy = NULL;
    pthread_mutex_lock(&lock);
    const struct instance *instance = registry_find(function);
    const struct stepwise *set = instance ? instance->stepwise : NULL;
    const bool is_known = set && set->block[0] && set->size <= STEPWISE_BYTES;
    if (is_known && (copy = malloc(sizeof *copy)))
        *copy = *set;
    pthread_mutex_unlock(&lock);
    return copy;
}

void stepwise_reset(void)
{
    pthread_mutex_init(&lock, NULL);
}
