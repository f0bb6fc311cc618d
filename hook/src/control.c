#define _GNU_SOURCE
#include "control.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "settings.h"

enum { LOG_PART = 8 };

/* In the place of a page for which there is no memory. */
static struct control spare;

struct control *control = &spare;
atomic_uint control_closed;
atomic_uint control_opened;

/* Only a file of this user's, of the whole size: a page that lies behind its end would end the program. */
static bool is_ours(int file)
{
    struct stat status;
    return fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
           status.st_size >= CONTROL_BYTES;
}

static struct control *map_run(const char *path)
{
    int file = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
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
}

bool control_start(void)
{
    struct control *page = settings.control ? map_run(settings.control) : NULL;
    bool as_asked = page || !settings.control;
    if (!page) { /* shared with the children that this process forks */
        page = mmap(NULL, CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        page = page == MAP_FAILED ? &spare : page;
        fill(page);
    }
    control = page;
    return as_asked;
}

void control_gate(enum control_gate gate, bool open)
{
    if (!open)
        atomic_fetch_or(&control_closed, gate);
    else if (atomic_fetch_and(&control_closed, ~(unsigned)gate) == (unsigned)gate)
        atomic_fetch_add(&control_opened, 1);
}

/* Beside what is counted in the budget itself. */
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

uint64_t control_left_beside_log(void)
{
    uint64_t limit = atomic_load(&control->trace_bytes.limit), left = control_left(&control->trace_bytes);
    if (limit == CONTROL_NO_LIMIT)
        return CONTROL_NO_LIMIT;
    uint64_t most = limit / LOG_PART, of_log = atomic_load(&control->log_bytes.limit);
    uint64_t kept = of_log < most ? of_log : most, used = atomic_load(&control->log_bytes.used);
    kept = kept > used ? kept - used : 0;
    return left > kept ? left - kept : 0;
}
