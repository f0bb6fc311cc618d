#include "writer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "buffers.h"
#include "drain_dropped.h"
#include "drain_wake.h"
#include "host_memory.h"
#include "liveness.h"
#include "result.h"
#include "threads.h"

struct job {
    struct job *next;
    uint8_t *bytes;
    size_t size;
    struct piece *pieces;
    size_t n;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static struct job *oldest, **newest = &oldest;
static atomic_uint_fast64_t submitted, finished;

uint8_t *writer_room(size_t size)
{
    if (!host_memory_take(HOST_RECORDS, size))
        return NULL;
    uint8_t *bytes = malloc(size);
    if (!bytes)
        host_memory_give(HOST_RECORDS, size);
    return bytes;
}

void writer_give_back(uint8_t *bytes, size_t size)
{
    if (bytes)
        host_memory_give(HOST_RECORDS, size);
    free(bytes);
}

bool writer_submit(uint8_t *bytes, size_t size, struct piece *pieces, size_t n)
{
    struct job *job = malloc(sizeof *job);
    if (!job)
        return false;
    *job = (struct job){.bytes = bytes, .size = size, .pieces = pieces, .n = n};
    pthread_mutex_lock(&mutex);
    *newest = job;
    newest = &job->next;
    atomic_fetch_add(&submitted, 1);
    pthread_cond_signal(&arrived);
    pthread_mutex_unlock(&mutex);
    return true;
}

uint64_t writer_submitted(void)
{
    return atomic_load(&submitted);
}

bool writer_finished(uint64_t n)
{
    return atomic_load(&finished) >= n;
}

static const void *read_memory(void *argument, size_t offset, size_t size)
{
    (void)size;
    return (const uint8_t *)argument + offset;
}

static void write_job(const struct job *job)
{
    struct result_source source = {.read = read_memory, .argument = job->bytes, .window = SIZE_MAX};
    for (size_t i = 0; i < job->n; i++) {
        if (!job->pieces[i].void_launch && !result_write(&job->pieces[i], &source))
            drain_dropped(!job->pieces[i].continues, result_stopped());
        liveness_mark(LIVENESS_WRITER, false);
    }
}

static struct job *take(void)
{
    pthread_mutex_lock(&mutex);
    liveness_mark(LIVENESS_WRITER, !oldest);
    while (!oldest)
        pthread_cond_wait(&arrived, &mutex);
    liveness_mark(LIVENESS_WRITER, false);
    struct job *job = oldest;
    oldest = job->next;
    if (!oldest)
        newest = &oldest;
    pthread_mutex_unlock(&mutex);
    return job;
}

static void *write_results(void *unused)
{
    (void)unused;
    liveness_begin(LIVENESS_WRITER);
    for (;;) {
        struct job *job = take();
        write_job(job);
        writer_give_back(job->bytes, job->size);
        free(job->pieces);
        free(job);
        atomic_fetch_add(&finished, 1);
        drain_wake();
    }
    return NULL;
}

bool writer_start(void)
{
    return thread_start(write_results);
}

void writer_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    pthread_cond_init(&arrived, NULL);
    oldest = NULL;
    newest = &oldest;
    atomic_store(&submitted, 0);
    atomic_store(&finished, 0);
}
