#include "schedule.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Divisors of the backoff: about 75 of a million launches of a shape with light probes, 16 with heavy ones, of which
 * one launch may take as long as all others of the program. MOST_EXTRAS: a launch whose map without a cap had no room
 * for all records is made up for; if room is short twice, it is by the program's nature. */
enum { LIGHT_DIVISOR = 8, HEAVY_DIVISOR = 1, MOST_EXTRAS = 2 };

/* The groups of one kernel. Launching threads read without a lock: entries are only added, and published last. */
struct group_table {
    atomic_uint n_shapes;
    struct {
        struct shape shape; /* here too, since a launch goes through them */
        struct shape_group *group;
    } entries[GROUP_SHAPES];
    _Atomic(struct shape_group *) orders[GROUP_ORDERS];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* held while a group is added */
static _Atomic(struct shape_group *) newest;
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
            return GROUP_ORDERS - 1; /* the driver refuses such a grid */
    return blocks ? 63 - (unsigned)__builtin_clzll(blocks) : 0;
}

/* Word by word: what was written just now as single words cannot be read as larger ones without waiting for the
 * cache. */
static inline bool same(const struct shape *a, const struct shape *b)
{
    return a->grid[0] == b->grid[0] && a->grid[1] == b->grid[1] && a->grid[2] == b->grid[2] &&
           a->block[0] == b->block[0] && a->block[1] == b->block[1] && a->block[2] == b->block[2] &&
           a->shared == b->shared && a->cluster[0] == b->cluster[0] && a->cluster[1] == b->cluster[1] &&
           a->cluster[2] == b->cluster[2];
}

static struct shape_group *find(const struct group_table *table, const struct shape *shape)
{
    const unsigned n = atomic_load_explicit(&table->n_shapes, memory_order_acquire);
    for (unsigned i = 0; i < n; i++)
        if (same(&table->entries[i].shape, shape))
            return table->entries[i].group;
    if (n < GROUP_SHAPES)
        return NULL;
    return atomic_load_explicit(&table->orders[order_of(shape)], memory_order_acquire);
}

/* From its name and the group's place among its groups: the same in each run of a program. */
static uint64_t seed_of(const struct kernel *kernel, uint64_t place)
{
    uint64_t seed = 0xcbf29ce484222325ull; /* FNV-1a */
    for (const char *c = kernel->name; *c; c++)
        seed = (seed ^ (uint8_t)*c) * 0x100000001b3ull;
    return seed + place;
}

static struct shape_group *make_group(struct kernel *kernel, const struct shape *shape, uint64_t place)
{
    struct shape_group *group = aligned_alloc(_Alignof(struct shape_group), sizeof *group);
    if (!group)
        return NULL;
    memset(group, 0, sizeof *group);
    group->kernel = kernel;
    group->id = n_keys++;
    group->shares = place >= GROUP_SHAPES;
    group->order = order_of(shape);
    group->shape = *shape;
    group->seed = seed_of(kernel, place);
    group->older = atomic_load_explicit(&newest, memory_order_relaxed);
    atomic_store_explicit(&newest, group, memory_order_release);
    return group;
}

static struct shape_group *add(struct kernel *kernel, struct group_table *table, const struct shape *shape)
{
    const unsigned n = atomic_load_explicit(&table->n_shapes, memory_order_relaxed);
    if (n == GROUP_SHAPES) {
        const unsigned order = order_of(shape);
        struct shape_group *group = make_group(kernel, shape, GROUP_SHAPES + order);
        atomic_store_explicit(&table->orders[order], group, memory_order_release);
        return group;
    }
    struct shape_group *group = make_group(kernel, shape, n);
    if (!group)
        return NULL;
    table->entries[n].shape = *shape;
    table->entries[n].group = group;
    atomic_store_explicit(&table->n_shapes, n + 1, memory_order_release);
    return group;
}

static struct shape_group *find_or_add(struct kernel *kernel, const struct shape *shape)
{
    struct group_table *table = atomic_load_explicit(&kernel->groups, memory_order_relaxed);
    if (!table) {
        if (!(table = calloc(1, sizeof *table)))
            return NULL;
        atomic_store_explicit(&kernel->groups, table, memory_order_release);
    }
    struct shape_group *group = find(table, shape);
    return group ? group : add(kernel, table, shape);
}

static struct shape_group *find_in_table(struct kernel *kernel, const struct shape *shape)
{
    const struct group_table *table = atomic_load_explicit(&kernel->groups, memory_order_acquire);
    struct shape_group *group = table ? find(table, shape) : NULL;
    if (group)
        return group;
    pthread_mutex_lock(&mutex);
    group = find_or_add(kernel, shape);
    pthread_mutex_unlock(&mutex);
    return group;
}

/* The place of the group of such a launch in its instance. Grids differ most. */
static inline _Atomic(struct shape_group *) *recent_of(struct instance *instance, const struct shape *shape)
{
    return &instance->recent_groups[(shape->grid[0] * 0x9e3779b1u >> 16 ^ shape->grid[1]) % INSTANCE_RECENT_GROUPS];
}

struct shape_group *schedule_group(struct kernel *kernel, const struct launch *launch)
{
    const struct shape shape = shape_of(launch);
    if (!launch->instance)
        return find_in_table(kernel, &shape);
    _Atomic(struct shape_group *) *recent = recent_of(launch->instance, &shape);
    struct shape_group *group = atomic_load_explicit(recent, memory_order_acquire);
    __builtin_prefetch((const void *)&kernel->status); /* in one wait with the group, since a launch needs both */
    if (group)
        __builtin_prefetch((const void *)&group->launches, 1);
    if (group && group->kernel == kernel && same(&group->shape, &shape))
        return group;
    if ((group = find_in_table(kernel, &shape)))
        atomic_store_explicit(recent, group, memory_order_release);
    return group;
}

bool schedule_take(struct shape_group *group, uint64_t nth, bool heavy)
{
    return backoff_due(&group->probes, schedule_place(group, nth), group->seed, heavy ? HEAVY_DIVISOR : LIGHT_DIVISOR);
}

void schedule_again(struct shape_group *group)
{
    if (atomic_fetch_add_explicit(&group->extras, 1, memory_order_relaxed) < MOST_EXTRAS)
        atomic_store_explicit(&group->probes.next, 0, memory_order_relaxed);
}

static void renew(struct shape_group *group)
{
    const uint64_t launches = atomic_load(&group->launches); /* with the one that finds the switch turned */
    atomic_store_explicit(&group->begun, launches ? launches - 1 : 0, memory_order_relaxed);
    atomic_store_explicit(&group->probes.next, 0, memory_order_relaxed);
    atomic_store_explicit(&group->extras, 0, memory_order_relaxed);
}

void schedule_renew(void)
{
    schedule_each(renew);
}

void schedule_renew_kernel(const struct kernel *kernel)
{
    for (struct shape_group *group = atomic_load_explicit(&newest, memory_order_acquire); group; group = group->older)
        if (group->kernel == kernel)
            renew(group);
}

void schedule_each(void (*visit)(struct shape_group *group))
{
    for (struct shape_group *group = atomic_load_explicit(&newest, memory_order_acquire); group; group = group->older)
        visit(group);
}

void schedule_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
}
