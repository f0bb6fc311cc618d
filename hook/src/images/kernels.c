#include "kernels.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "reasons.h"
#include "settings.h"

enum { BUCKETS = 4096, MOST_KERNELS = 16384 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct kernel *buckets[BUCKETS];
static struct kernel *newest;
static struct kernel *others; /* the record that kernels without one of their own share */
static uint32_t n_kernels, kernels_launched;

static bool is_same(const struct identity *a, const struct identity *b)
{
    return digest_equal(&a->image, &b->image) && a->options == b->options && a->capability == b->capability;
}

static struct kernel **bucket_of(const struct identity *identity, const char *name)
{
    uint64_t hash = identity->image.low ^ identity->options;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 0x100000001b3ull;
    return &buckets[(hash ^ hash >> 32) % BUCKETS];
}

static struct kernel *make(const struct identity *identity, const char *name)
{
    const size_t n = settings.n_probes;
    struct kernel *kernel = calloc(1, sizeof *kernel + (n + settings.fuses) * sizeof *kernel->probes);
    if (!kernel || !(kernel->name = strdup(name))) {
        free(kernel);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        kernel->probes[i].kernel = kernel;
        kernel->probes[i].name = settings.probes[i].name;
        kernel->probes[i].sampling = settings.probes[i].sampling;
        kernel->probes[i].is_part = settings.fuses && settings.probes[i].is_part;
    }
    kernel->n_probes = n;
    if (settings.fuses) {
        kernel->fused = &kernel->probes[n];
        kernel->fused->kernel = kernel;
        kernel->fused->name = FUSED_NAME;
        kernel->fused->sampling.kind = SAMPLE_ALL;
    }
    kernel->identity = *identity;
    kernel->index = KERNEL_NO_INDEX;
    kernel->older = newest;
    newest = kernel;
    n_kernels++;
    return kernel;
}

/* The name cannot be that of a kernel. */
static struct kernel *make_others(void)
{
    struct kernel *kernel = make(&(struct identity){0}, "other-kernels");
    if (kernel)
        atomic_store(&kernel->reason, reason(TOO_MANY_KERNELS));
    return kernel;
}

static struct kernel *find_or_make(const struct identity *identity, const char *name)
{
    struct kernel **bucket = bucket_of(identity, name);
    for (struct kernel *kernel = *bucket; kernel; kernel = kernel->of_bucket)
        if (is_same(&kernel->identity, identity) && strcmp(kernel->name, name) == 0)
            return kernel;
    if (n_kernels >= MOST_KERNELS || !control_log_has_reserve())
        return others ? others : (others = make_others());
    struct kernel *kernel = make(identity, name);
    if (kernel) {
        kernel->of_bucket = *bucket;
        *bucket = kernel;
    }
    return kernel;
}

static struct kernel *get(const struct identity *identity, const char *name)
{
    pthread_mutex_lock(&mutex);
    struct kernel *kernel = find_or_make(identity, name);
    pthread_mutex_unlock(&mutex);
    return kernel;
}

/* By the beginning of its name and a hash of all of it. */
static struct kernel *get_long(const struct identity *identity, const char *name, size_t length)
{
    enum { SHOWN_BYTES = 200 };
    char cut[SHOWN_BYTES + 64], bytes[REASON_NUMBER_SIZE], most[REASON_NUMBER_SIZE];
    snprintf(cut, sizeof cut, "%.*s...%016llx", SHOWN_BYTES, name, (unsigned long long)digest_of(name, length).low);
    struct kernel *kernel = get(identity, cut);
    if (kernel && !atomic_load(&kernel->reason))
        atomic_store(&kernel->reason,
                     reason_with(NAME_TOO_LONG, reason_number(bytes, length), reason_number(most, KERNEL_NAME_BYTES)));
    return kernel;
}

struct kernel *kernels_get(const struct identity *identity, const char *name)
{
    const size_t length = strlen(name);
    return length > KERNEL_NAME_BYTES ? get_long(identity, name, length) : get(identity, name);
}

void kernels_number(struct kernel *kernel)
{
    pthread_mutex_lock(&mutex);
    if (kernel->index == KERNEL_NO_INDEX)
        kernel->index = kernels_launched++;
    pthread_mutex_unlock(&mutex);
}

void kernels_each(void (*visit)(struct kernel *kernel, void *argument), void *argument)
{
    pthread_mutex_lock(&mutex);
    for (struct kernel *kernel = newest; kernel; kernel = kernel->older)
        visit(kernel, argument);
    pthread_mutex_unlock(&mutex);
}

void kernels_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
}
