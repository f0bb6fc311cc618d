#include "schedule.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { LIGHT_DIVISOR = 8, HEAVY_DIVISOR = 1, MOST_EXTRAS = 2 };

/* The keys of one kernel. Launching threads read without a lock: entries are only added, and published last. */
struct key_table {
    atomic_uint n_shapes;
    struct shape shapes[KEY_SHAPES]; /* beside one another, since each launch goes through them */
    struct key *keys[KEY_SHAPES];
    _Atomic(struct key *) orders[KEY_ORDERS];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* held while a key is added */
static _Atomic(struct key *) newest;
static uint32_t n_keys;

static void read_cluster(const struct launch *launch, struct shape *shape)
{
    for (unsigned int i = 0; i < launch->config->numAttrs; i++)
        if (launch->config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            memcpy(shape->cluster, launch->config->attrs[i].value.bytes, sizeof shape->cluster);
}

static inline struct shape shape_of(const struct launch *l)
{
    struct shape shape = {.grid = {l->grid[0], l->grid[1], l->grid[2]},
                          .block = {l->block[0], l->block[1], l->block[2]},
                          .shared = l->shared};
    if (l->form == LAUNCH_EX)
        read_cluster(l, &shape);
    return shape;
}

static unsigned order_of(const struct shape *shape)
{
    uint64_t blocks = 1;
    for (int i = 0; i < 3; i++)
        if (__builtin_mul_overflow(blocks, (uint64_t)shape->grid[i], &blocks))
            return KEY_ORDERS - 1; /* the driver refuses such a grid */
    return blocks ? 63 - (unsigned)__builtin_clzll(blocks) : 0;
}

/* Word by word: what was written just now as single words cannot be read as larger ones without waiting for the cache. */
static inline bool same(const struct shape *a, const struct shape *b)
{
    return a->grid[0] == b->grid[0] && a->grid[1] == b->grid[1] && a->grid[2] == b->grid[2] &&
           a->block[0] == b->block[0] && a->block[1] == b->block[1] && a->block[2] == b->block[2] &&
           a->shared == b->shared && a->cluster[0] == b->cluster[0] && a->cluster[1] == b->cluster[1] &&
           a->cluster[2] == b->cluster[2];
}

static struct key *find(const struct key_table *table, const struct shape *shape)
{
    const unsigned n = atomic_load_explicit(&table->n_shapes, memory_order_acquire);
    for (unsigned i = 0; i < n; i++)
        if (same(&table->shapes[i], shape))
            return table->keys[i];
    if (n < KEY_SHAPES)
        return NULL;
    return atomic_load_explicit(&table->orders[order_of(shape)], memory_order_acquire);
}

/* From its name and the key's place among its keys: the same in each run of a program. */
static uint64_t seed_of(const struct kernel *kernel, uint64_t place)
{
    uint64_t seed = 0xcbf29ce484222325ull; /* FNV-1a */
    for (const char *c = kernel->name; *c; c++)
        seed = (seed ^ (uint8_t)*c) * 0x100000001b3ull;
    return seed + place;
}

static struct key *make_key(struct kernel *kernel, const struct shape *shape, uint64_t place)
{
    struct key *key = aligned_alloc(_Alignof(struct key), sizeof *key);
    if (!key)
        return NULL;
    memset(key, 0, sizeof *key);
    key->kernel = kernel;
    key->id = n_keys++;
    key->shares = place >= KEY_SHAPES;
    key->order = order_of(shape);
    key->shape = *shape;
    key->seed = seed_of(kernel, place);
    key->older = atomic_load_explicit(&newest, memory_order_relaxed);
    atomic_store_explicit(&newest, key, memory_order_release);
    return key;
}

static struct key *add(struct kernel *kernel, struct key_table *table, const struct shape *shape)
{
    const unsigned n = atomic_load_explicit(&table->n_shapes, memory_order_relaxed);
    if (n == KEY_SHAPES) {
        const unsigned order = order_of(shape);
        struct key *key = make_key(kernel, shape, KEY_SHAPES + order);
        atomic_store_explicit(&table->orders[order], key, memory_order_release);
        return key;
    }
    struct key *key = make_key(kernel, shape, n);
    if (!key)
        return NULL;
    table->shapes[n] = *shape;
    table->keys[n] = key;
    atomic_store_explicit(&table->n_shapes, n + 1, memory_order_release);
    return key;
}

static struct key *find_or_add(struct kernel *kernel, const struct shape *shape)
{
    struct key_table *table = atomic_load_explicit(&kernel->keys, memory_order_relaxed);
    if (!table) {
        if (!(table = calloc(1, sizeof *table)))
            return NULL;
        atomic_store_explicit(&kernel->keys, table, memory_order_release);
    }
    struct key *key = find(table, shape);
    return key ? key : add(kernel, table, shape);
}

struct key *schedule_key(struct kernel *kernel, const struct launch *launch)
{
    const struct shape shape = shape_of(launch);
    const struct key_table *table = atomic_load_explicit(&kernel->keys, memory_order_acquire);
    struct key *key = table ? find(table, &shape) : NULL;
    if (key)
        return key;
    pthread_mutex_lock(&mutex);
    key = find_or_add(kernel, &shape);
    pthread_mutex_unlock(&mutex);
    return key;
}

bool schedule_take(struct key *key, uint64_t nth, bool heavy)
{
    return pace_due(&key->probes, schedule_place(key, nth), key->seed, heavy ? HEAVY_DIVISOR : LIGHT_DIVISOR);
}

void schedule_again(struct key *key)
{
    if (atomic_fetch_add_explicit(&key->extras, 1, memory_order_relaxed) < MOST_EXTRAS)
        atomic_store_explicit(&key->probes.next, 0, memory_order_relaxed);
}

static void renew(struct key *key)
{
    const uint64_t launches = atomic_load(&key->launches); /* with the one that finds the switch turned */
    atomic_store_explicit(&key->begun, launches ? launches - 1 : 0, memory_order_relaxed);
    atomic_store_explicit(&key->probes.next, 0, memory_order_relaxed);
    atomic_store_explicit(&key->extras, 0, memory_order_relaxed);
}

void schedule_renew(void)
{
    schedule_each(renew);
}

void schedule_each(void (*visit)(struct key *key))
{
    for (struct key *key = atomic_load_explicit(&newest, memory_order_acquire); key; key = key->older)
        visit(key);
}

void schedule_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
}
