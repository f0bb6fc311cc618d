#include "stepwise.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "handle_table.h"

struct noted {
    struct noted *next;
    struct stepwise set;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct handle_table by_function;
static struct noted *all;

/* The record of FUNCTION, made on first sight; NULL without memory. The caller holds the lock. */
static struct noted *of(CUfunction function)
{
    struct noted *noted = handle_table_get(&by_function, function);
    if (noted || !(noted = calloc(1, sizeof *noted)))
        return noted;
    if (!handle_table_put(&by_function, function, noted)) {
        free(noted);
        return NULL;
    }
    noted->next = all;
    all = noted;
    return noted;
}

void stepwise_note_block(CUfunction function, int x, int y, int z)
{
    pthread_mutex_lock(&lock);
    struct noted *noted = of(function);
    if (noted) {
        noted->set.block[0] = (uint32_t)x;
        noted->set.block[1] = (uint32_t)y;
        noted->set.block[2] = (uint32_t)z;
    }
    pthread_mutex_unlock(&lock);
}

void stepwise_note_shared(CUfunction function, unsigned int bytes)
{
    pthread_mutex_lock(&lock);
    struct noted *noted = of(function);
    if (noted)
        noted->set.shared = bytes;
    pthread_mutex_unlock(&lock);
}

void stepwise_note_size(CUfunction function, unsigned int bytes)
{
    pthread_mutex_lock(&lock);
    struct noted *noted = of(function);
    if (noted)
        noted->set.size = bytes;
    pthread_mutex_unlock(&lock);
}

void stepwise_note_values(CUfunction function, int offset, const void *values, unsigned int bytes)
{
    if (!values || offset < 0 || offset > STEPWISE_BYTES || bytes > STEPWISE_BYTES - (unsigned int)offset)
        return;
    pthread_mutex_lock(&lock);
    struct noted *noted = of(function);
    if (noted)
        memcpy(noted->set.values + offset, values, bytes);
    pthread_mutex_unlock(&lock);
}

struct stepwise *stepwise_get(CUfunction function)
{
    struct stepwise *copy = NULL;
    pthread_mutex_lock(&lock);
    const struct noted *noted = handle_table_get(&by_function, function);
    const bool is_known = noted && noted->set.block[0] && noted->set.size <= STEPWISE_BYTES;
    if (is_known && (copy = malloc(sizeof *copy)))
        *copy = noted->set;
    pthread_mutex_unlock(&lock);
    return copy;
}

/* Records stay, for a table keeps its handles. */
void stepwise_forget(void)
{
    pthread_mutex_lock(&lock);
    for (struct noted *noted = all; noted; noted = noted->next)
        noted->set = (struct stepwise){0};
    pthread_mutex_unlock(&lock);
}

void stepwise_reset(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    stepwise_forget();
}
