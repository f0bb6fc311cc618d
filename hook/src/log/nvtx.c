#define _GNU_SOURCE
#include "nvtx.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "event_log.h"
#include "hook_state.h"
#include "launch_counts.h"
#include "nvtx_text.h"
#include "settings.h"
#include "signals.h"

enum { MOST_RUNS = 32, RUN_DIGITS = 48 };

/* Launches FIRST to LAST of the process, by number. */
struct run {
    uint64_t first, last;
};

struct range {
    uint64_t id, parent; /* 0: none */
    uint64_t start;
    const struct nvtx_domain *domain;
    char *text;
    long thread; /* 0: of all threads */
    uint64_t before; /* launches of the process before a started range */
    bool asked_for; /* its launches, and those of others like it, are probed */
    struct run runs[MOST_RUNS];
    size_t n_runs;
    struct range *next;
};

/* The ranges that a thread has pushed and not popped, the newest first, of all domains. */
struct thread {
    long id;
    unsigned inside; /* of how many ranges that are asked for */
    struct range *open;
    struct thread *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all lists here */
static struct thread *threads;
static struct range *started;
static atomic_uint started_inside; /* started ranges that are asked for */
static uint64_t last_id;
static _Thread_local struct thread *mine __attribute__((tls_model("initial-exec")));

static void write_runs(const struct range *range, char *to, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < range->n_runs; i++) {
        const struct run *run = &range->runs[i];
        used += (size_t)snprintf(to + used, size - used, run->first == run->last ? "%s%llu" : "%s%llu-%llu",
                                 i ? "," : "", (unsigned long long)run->first, (unsigned long long)run->last);
    }
}

/* One line, if the range encloses a launch. END is 0 while it is open. */
static void log_range(const struct range *range, uint64_t end)
{
    char launches[MOST_RUNS * RUN_DIGITS], when[24] = "-";
    if (!range->n_runs)
        return;
    write_runs(range, launches, sizeof launches);
    if (end)
        snprintf(when, sizeof when, "%llu", (unsigned long long)end);
    event_log_often("[nvtx] range %llu in %llu thread %ld start %llu end %s launches %s domain %s text %s\n",
                    (unsigned long long)range->id, (unsigned long long)range->parent, range->thread,
                    (unsigned long long)range->start, when, launches, nvtx_domain_name(range->domain), range->text);
}

static void free_range(struct range *range)
{
    free(range->text);
    free(range);
}

/* Takes TEXT. NULL if nothing is recorded, or there is no memory for it. */
static struct range *new_range(const struct nvtx_domain *domain, char *text)
{
    struct range *range = text && hook_active() ? calloc(1, sizeof *range) : NULL;
    if (!range) {
        free(text);
        return NULL;
    }
    range->start = clock_now();
    range->domain = domain;
    range->text = text;
    range->asked_for = settings.nvtx && strcmp(text, settings.nvtx) == 0;
    return range;
}

static struct thread *this_thread(void)
{
    if (!mine && (mine = calloc(1, sizeof *mine))) {
        mine->id = syscall(SYS_gettid);
        mine->next = threads;
        threads = mine;
    }
    return mine;
}

void nvtx_push(const struct nvtx_domain *domain, char *text)
{
    struct range *range = new_range(domain, text);
    signals_lock(&mutex);
    struct thread *thread = range ? this_thread() : NULL;
    if (thread) {
        const struct range *outer = thread->open;
        while (outer && outer->domain != domain)
            outer = outer->next;
        range->id = ++last_id;
        range->parent = outer ? outer->id : 0;
        range->thread = thread->id;
        range->next = thread->open;
        thread->open = range;
        thread->inside += range->asked_for;
    }
    signals_unlock(&mutex);
    if (!thread && range)
        free_range(range);
}

/* RANGE has ended, if there was one. */
static void finish(struct range *range)
{
    if (!range)
        return;
    log_range(range, clock_now());
    free_range(range);
}

void nvtx_pop(const struct nvtx_domain *domain)
{
    struct range *range = NULL;
    signals_lock(&mutex);
    for (struct range **link = mine ? &mine->open : NULL; link && *link; link = &(*link)->next) {
        if ((*link)->domain != domain)
            continue;
        range = *link;
        *link = range->next;
        mine->inside -= range->asked_for;
        break;
    }
    signals_unlock(&mutex);
    finish(range);
}

uint64_t nvtx_start(const struct nvtx_domain *domain, char *text)
{
    struct range *range = new_range(domain, text);
    if (!range)
        return 0;
    signals_lock(&mutex);
    uint64_t id = range->id = ++last_id;
    range->before = launch_count();
    range->next = started;
    started = range;
    atomic_fetch_add(&started_inside, range->asked_for);
    signals_unlock(&mutex);
    return id;
}

/* A started range encloses all launches of the process from then on. */
static void count_started(struct range *range)
{
    uint64_t now = launch_count();
    if (now > range->before)
        range->runs[range->n_runs++] = (struct run){range->before, now - 1};
}

void nvtx_end(uint64_t id)
{
    struct range *range = NULL;
    signals_lock(&mutex);
    for (struct range **link = &started; *link; link = &(*link)->next) {
        if ((*link)->id != id)
            continue;
        range = *link;
        *link = range->next;
        count_started(range);
        atomic_fetch_sub(&started_inside, range->asked_for);
        break;
    }
    signals_unlock(&mutex);
    finish(range);
}

/* A range with too many runs is logged in parts, which have one id. */
static void add_launches(struct range *range, uint64_t first, uint64_t last)
{
    struct run *run = range->n_runs ? &range->runs[range->n_runs - 1] : NULL;
    if (run && run->last + 1 == first) {
        run->last = last;
        return;
    }
    if (range->n_runs == MOST_RUNS) {
        log_range(range, 0);
        range->n_runs = 0;
    }
    range->runs[range->n_runs++] = (struct run){first, last};
}

void nvtx_launched(uint64_t first, uint64_t n)
{
    if (!mine || !mine->open || !n)
        return;
    signals_lock(&mutex);
    for (struct range *range = mine->open; range; range = range->next)
        add_launches(range, first, first + n - 1);
    signals_unlock(&mutex);
}

bool nvtx_is_inside(void)
{
    return (mine && mine->inside) || atomic_load_explicit(&started_inside, memory_order_relaxed);
}

void nvtx_flush(void)
{
    signals_lock(&mutex);
    for (struct thread *thread = threads; thread; thread = thread->next)
        for (struct range *range = thread->open; range; range = range->next)
            log_range(range, 0);
    for (struct range *range = started; range; range = range->next) {
        count_started(range);
        log_range(range, 0);
        range->n_runs = 0;
    }
    signals_unlock(&mutex);
}

void nvtx_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    threads = NULL;
    started = NULL;
    atomic_store(&started_inside, 0);
    last_id = 0;
    mine = NULL;
}
