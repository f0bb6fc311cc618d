#define _GNU_SOURCE
#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "settings.h"
#include "system_call.h"

/* LOG_PART: logs may take 1/8 of the trace's bytes, the rest is for results. RESERVE_PART: lines that explain why a
 * budget was reached still find room behind it. */
enum { LOG_PART = 8, RESERVE_PART = 8 };

/* Used where there is no memory for a shared page. */
static struct control spare;

struct control *control = &spare;
atomic_uint control_closed;
atomic_uint control_opened;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* held while this process looks for its place */
static bool is_shared;
static _Atomic(struct control_process *) mine;
static struct control_process no_place; /* where there are more processes than the page has places for */

/* Only memory of this user's, of the whole size, that no one can make shorter: to use a page that lies behind the end
 * of its file would end the program. */
static bool is_ours(int file)
{
    struct stat status;
    const int seals = fcntl(file, F_GET_SEALS);
    return seals >= 0 && seals & F_SEAL_SHRINK && fstat(file, &status) == 0 && status.st_uid == geteuid() &&
           status.st_size >= CONTROL_BYTES;
}

static struct control *map_run(const char *path)
{
    int file = open(path, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct control *page = MAP_FAILED;
    if (file >= 0 && is_ours(file))
        page = mmap(NULL, CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    if (page == MAP_FAILED)
        return NULL;
    if (memcmp(page->magic, CONTROL_MAGIC, sizeof page->magic) == 0 && page->version == CONTROL_VERSION)
        return page;
    munmap(page, CONTROL_BYTES);
    return NULL;
}

static void fill(struct control *page)
{
    memcpy(page->magic, CONTROL_MAGIC, sizeof page->magic);
    page->version = CONTROL_VERSION;
    atomic_store(&page->on, 1);
    atomic_store(&page->shares, 1);
    atomic_store(&page->trace_bytes.limit, settings.max_trace_bytes);
    atomic_store(&page->result_files.limit, settings.max_result_files);
    atomic_store(&page->log_bytes.limit, settings.max_log_bytes);
    atomic_store(&page->write_rate, settings.max_write_rate);
}

bool control_start(void)
{
    struct control *page = settings.control ? map_run(settings.control) : NULL;
    bool as_asked = page || !settings.control;
    is_shared = page;
    if (!page) { /* shared with the children that this process forks */
        page = mmap(NULL, CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        page = page == MAP_FAILED ? &spare : page;
        fill(page);
    }
    control = page;
    return as_asked;
}

bool control_is_shared(void)
{
    return is_shared;
}

void control_gate(enum control_gate gate, bool open)
{
    if (!open)
        atomic_fetch_or(&control_closed, gate);
    else if (atomic_fetch_and(&control_closed, ~(unsigned)gate) == (unsigned)gate)
        atomic_fetch_add(&control_opened, 1);
}

/* Bytes that count in addition to the budget itself. */
static uint64_t of_launcher(const struct control_budget *budget)
{
    return budget == &control->trace_bytes ? atomic_load(&control->launcher_bytes) : 0;
}

uint64_t control_left(const struct control_budget *budget)
{
    uint64_t limit = atomic_load(&budget->limit), used = atomic_load(&budget->used) + of_launcher(budget);
    if (limit == CONTROL_NO_LIMIT)
        return CONTROL_NO_LIMIT;
    return limit > used ? limit - used : 0;
}

bool control_take(struct control_budget *budget, uint64_t amount)
{
    uint64_t limit = atomic_load(&budget->limit), used = atomic_load(&budget->used), more = of_launcher(budget);
    do
        if (limit != CONTROL_NO_LIMIT && (used + more > limit || limit - used - more < amount))
            return false;
    while (!atomic_compare_exchange_weak(&budget->used, &used, used + amount));
    return true;
}

void control_use(struct control_budget *budget, uint64_t amount)
{
    atomic_fetch_add(&budget->used, amount);
}

/* Never below nothing: the count is shared with others, whose errors must not become an empty budget. */
void control_return(struct control_budget *budget, uint64_t amount)
{
    uint64_t used = atomic_load(&budget->used);
    while (!atomic_compare_exchange_weak(&budget->used, &used, used > amount ? used - amount : 0))
        ;
}

bool control_log_is_open(void)
{
    return control_left(&control->log_bytes) && control_left(&control->trace_bytes);
}

static bool has_reserve(const struct control_budget *budget)
{
    const uint64_t limit = atomic_load(&budget->limit);
    return limit == CONTROL_NO_LIMIT || atomic_load(&budget->used) < limit + limit / RESERVE_PART;
}

bool control_log_has_reserve(void)
{
    return has_reserve(&control->log_bytes) && has_reserve(&control->trace_bytes);
}

uint64_t control_left_without_log(void)
{
    uint64_t limit = atomic_load(&control->trace_bytes.limit), left = control_left(&control->trace_bytes);
    if (limit == CONTROL_NO_LIMIT)
        return CONTROL_NO_LIMIT;
    uint64_t most = limit / LOG_PART, of_log = atomic_load(&control->log_bytes.limit);
    uint64_t reserved = of_log < most ? of_log : most, used = atomic_load(&control->log_bytes.used);
    reserved = reserved > used ? reserved - used : 0;
    return left > reserved ? left - reserved : 0;
}

/* Of one that is no more, or that another program took the place of (exec). */
static void give_back(struct control_process *process)
{
    control_return(&control->trace_bytes, atomic_exchange(&process->bytes, 0));
    control_return(&control->result_files, atomic_exchange(&process->files, 0));
}

static bool is_gone(uint64_t pid)
{
    return system_call(SYS_kill, (pid_t)pid, 0, 0) != 0 && errno == ESRCH; /* kill() is one of those that we watch */
}

/* Replaces process PID for FOR_PID, unless someone else is quicker. */
static bool take_over(struct control_process *process, uint64_t pid, uint64_t for_pid)
{
    if (!atomic_compare_exchange_strong(&process->pid, &pid, for_pid))
        return false;
    give_back(process);
    return true;
}

static struct control_process *find_place(uint64_t pid)
{
    struct control_process *all = control->processes;
    for (int i = 0; i < CONTROL_PROCESSES; i++)
        if (atomic_load(&all[i].pid) == pid && take_over(&all[i], pid, pid))
            return &all[i];
    for (int i = 0; i < CONTROL_PROCESSES; i++) {
        const uint64_t before = atomic_load(&all[i].pid);
        if ((!before || is_gone(before)) && take_over(&all[i], before, pid))
            return &all[i];
    }
    return NULL;
}

static struct control_process *my_place(void)
{
    struct control_process *place = atomic_load_explicit(&mine, memory_order_acquire);
    if (place)
        return place;
    pthread_mutex_lock(&mutex);
    if (!(place = atomic_load(&mine))) {
        place = find_place((uint64_t)getpid());
        atomic_store(&mine, place ? place : &no_place);
    }
    pthread_mutex_unlock(&mutex);
    return atomic_load(&mine);
}

void control_hold(int64_t bytes, int64_t files)
{
    struct control_process *place = my_place();
    atomic_fetch_add_explicit(&place->bytes, (uint64_t)bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&place->files, (uint64_t)files, memory_order_relaxed);
}

void control_reclaim(void)
{
    static _Atomic int64_t last;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t before = atomic_load(&last);
    if (before == now.tv_sec || !atomic_compare_exchange_strong(&last, &before, (int64_t)now.tv_sec))
        return;
    for (int i = 0; i < CONTROL_PROCESSES; i++) {
        const uint64_t pid = atomic_load(&control->processes[i].pid);
        if (pid && pid != (uint64_t)getpid() && is_gone(pid))
            take_over(&control->processes[i], pid, 0);
    }
}

void control_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    atomic_store(&mine, NULL);
}
