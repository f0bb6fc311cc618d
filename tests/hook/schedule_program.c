/* Asks the schedule about launches. Standard input: "WEIGHT THREADS", then a line "COUNT KERNEL X Y Z BX BY BZ SHARED CX
 * CY CZ" for launches that follow one another, COUNT 0: one before had no room for its records; WEIGHT is 1 for heavy probes, CX 0 for none. One thread says of each
 * launch "KEY PROBED". Several do all lines each, at the same time; then each key says "KEY LAUNCHES PROBED". */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule.h"

enum { MOST_KERNELS = 8, MOST_LINES = 4096, MOST_KEYS = 1024, MOST_THREADS = 64 };

struct row {
    unsigned long count;
    unsigned kernel;
    struct shape shape;
};

static struct kernel kernels[MOST_KERNELS];
static struct instance *instances[MOST_KERNELS];
static char names[MOST_KERNELS][32];
static struct row rows[MOST_LINES];
static size_t n_rows;
static atomic_ulong probed[MOST_KEYS];
static int heavy, n_threads;

static void launch_row(const struct row *row)
{
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    memcpy(attribute.value.bytes, row->shape.cluster, sizeof row->shape.cluster);
    CUlaunchConfig config = {.attrs = &attribute, .numAttrs = 1};
    struct launch launch = {.form = row->shape.cluster[0] ? LAUNCH_EX : LAUNCH_KERNEL,
                            .instance = instances[row->kernel],
                            .config = &config,
                            .shared = row->shape.shared};
    memcpy(launch.grid, row->shape.grid, sizeof launch.grid);
    memcpy(launch.block, row->shape.block, sizeof launch.block);
    if (!row->count)
        schedule_again(schedule_group(&kernels[row->kernel], &launch));
    for (unsigned long i = 0; i < row->count; i++) {
        struct shape_group *group = schedule_group(&kernels[row->kernel], &launch);
        if (!group)
            exit(3);
        uint64_t nth = schedule_count(group);
        int due = schedule_near(group, nth) && schedule_take(group, nth, heavy);
        if (n_threads == 1)
            printf("%u %d\n", group->id, due);
        else
            atomic_fetch_add(&probed[group->id], (unsigned long)due);
    }
}

static void *all_rows(void *unused)
{
    for (size_t i = 0; i < n_rows; i++)
        launch_row(&rows[i]);
    return unused;
}

static void tell(struct shape_group *group)
{
    printf("%u %llu %lu\n", group->id, (unsigned long long)atomic_load(&group->launches), atomic_load(&probed[group->id]));
}

static int read_row(struct row *row)
{
    struct shape *s = &row->shape;
    return scanf("%lu %u %u %u %u %u %u %u %u %u %u %u", &row->count, &row->kernel, &s->grid[0], &s->grid[1],
                 &s->grid[2], &s->block[0], &s->block[1], &s->block[2], &s->shared, &s->cluster[0], &s->cluster[1],
                 &s->cluster[2]) == 12;
}

int main(void)
{
    pthread_t threads[MOST_THREADS];
    for (int i = 0; i < MOST_KERNELS; i++) {
        snprintf(names[i], sizeof names[i], "kernel_%d", i);
        kernels[i].name = names[i];
        instances[i] = calloc(1, sizeof *instances[i]);
        if (!instances[i])
            return 2;
    }
    if (scanf("%d %d", &heavy, &n_threads) != 2 || n_threads > MOST_THREADS)
        return 2;
    while (n_rows < MOST_LINES && read_row(&rows[n_rows]))
        n_rows++;
    if (n_threads == 1) {
        all_rows(NULL);
        return 0;
    }
    for (int i = 0; i < n_threads; i++)
        pthread_create(&threads[i], NULL, all_rows, NULL);
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    schedule_each(tell);
    return 0;
}
