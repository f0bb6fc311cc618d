#include "legacy_launch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "registry.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The settings of FUNCTION, made on first sight; NULL without memory. The caller holds the lock. */
static struct legacy_launch *of(CUfunction function)
{
    struct instance *instance = registry_find(function);
    if (!instance)
        instance = registry_adopt(function);
    if (instance && !instance->legacy_launch)
        instance->legacy_launch = calloc(1, sizeof *instance->legacy_launch);
    return instance ? instance->legacy_launch : NULL;
}

void legacy_launch_note_block(CUfunction function, int x, int y, int z)
{
    pthread_mutex_lock(&lock);
    struct legacy_launch *set = of(function);
    if (set) {
        set->block[0] = (uint32_t)x;
        set->block[1] = (uint32_t)y;
        set->block[2] = (uint32_t)z;
    }
    pthread_mutex_unlock(&lock);
}

void legacy_launch_note_shared(CUfunction function, unsigned int bytes)
{
    pthread_mutex_lock(&lock);
    struct legacy_launch *set = of(function);
    if (set)
        set->shared = bytes;
    pthread_mutex_unlock(&lock);
}

void legacy_launch_note_size(CUfunction function, unsigned int bytes)
{
    pthread_mutex_lock(&lock);
    struct legacy_launch *set = of(function);
    if (set)
        set->size = bytes;
    pthread_mutex_unlock(&lock);
}

void legacy_launch_note_values(CUfunction function, int offset, const void *values, unsigned int bytes)
{
    if (!values || offset < 0 || offset > LEGACY_PARAMETER_BYTES ||
        bytes > LEGACY_PARAMETER_BYTES - (unsigned int)offset)
        return;
    pthread_mutex_lock(&lock);
    struct legacy_launch *set = of(function);
    if (set)
        memcpy(set->values + offset, values, bytes);
    pthread_mutex_unlock(&lock);
}

struct legacy_launch *legacy_launch_get(CUfunction function)
{
    struct legacy_launch *copy = NULL;
    pthread_mutex_lock(&lock);
    const struct instance *instance = registry_find(function);
    const struct legacy_launch *set = instance ? instance->legacy_launch : NULL;
    const bool is_known = set && set->block[0] && set->size <= LEGACY_PARAMETER_BYTES;
    if (is_known && (copy = malloc(sizeof *copy)))
        *copy = *set;
    pthread_mutex_unlock(&lock);
    return copy;
}

void legacy_launch_reset(void)
{
    pthread_mutex_init(&lock, NULL);
}
