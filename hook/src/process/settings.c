#include "settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control.h"
#include "given.h"

#define DEFAULT_TRACE_BYTES (1ull << 30)
#define DEFAULT_MIN_FREE_BYTES (2ull << 30)
#define DEFAULT_LOG_BYTES (128ull << 20)
#define DEFAULT_HOST_BYTES (256ull << 20)
#define DEFAULT_LONG_LAUNCH 10000ull
#define DEFAULT_KEPT_BYTES (1ull << 30)
#define DEFAULT_WRITE_RATE (256ull << 20)
enum { DEFAULT_MIN_FREE_PERCENT = 5, DEFAULT_RESULT_FILES = 2000 };

struct settings settings;

static const char *text(const char *name)
{
    const char *value = given(name);
    return value && *value ? strdup(value) : NULL;
}

static uint64_t number_or(const char *name, uint64_t otherwise)
{
    const char *value = given(name);
    return value && *value ? strtoull(value, NULL, 10) : otherwise;
}

/* "none" is as many as there are. */
static uint64_t limit(const char *name, uint64_t otherwise)
{
    const char *value = given(name);
    return value && strcmp(value, "none") == 0 ? CONTROL_NO_LIMIT : number_or(name, otherwise);
}

static uint64_t number(const char *name)
{
    return number_or(name, 0);
}

static unsigned seconds(const char *name, unsigned otherwise)
{
    uint64_t value = number(name);
    return value > 0 && value <= 86400 ? (unsigned)value : otherwise;
}

/* Splits "a:b" into {"a", "b", NULL}; an unset or empty variable gives NULL. */
static char **substrings(const char *name)
{
    const char *value = text(name);
    if (!value)
        return NULL;
    size_t n = 2;
    for (const char *c = value; *c; c++)
        n += *c == ':';
    char **list = calloc(n, sizeof *list);
    char *copy = strdup(value), *unread = copy;
    size_t used = 0;
    for (char *part; list && copy && (part = strsep(&unread, ":"));)
        if (*part)
            list[used++] = part;
    free((void *)(uintptr_t)value);
    return list;
}

static bool says(const char *name, const char *word)
{
    const char *value = given(name);
    return value && strcmp(value, word) == 0;
}

/* "0-9,20" gives {0, 9}, {20, 20}. */
static void read_launches(const char *value)
{
    while (value && *value) {
        char *end;
        struct launch_range range;
        range.first = range.last = strtoull(value, &end, 10);
        if (*end == '-')
            range.last = strtoull(end + 1, &end, 10);
        if (end == value)
            return;
        struct launch_range *grown = realloc(settings.launches, (settings.n_launches + 1) * sizeof range);
        if (!grown)
            return;
        settings.launches = grown;
        settings.launches[settings.n_launches++] = range;
        value = *end == ',' ? end + 1 : end;
        if (*end && *end != ',')
            return;
    }
}

/* The bits of a unit of 1024 that TEXT begins with, which is moved behind it; 0 if there is none. */
static unsigned unit_bits(char **text)
{
    static const char units[] = "KMGT";
    const char *unit = **text ? strchr(units, **text) : NULL;
    *text += unit != NULL;
    return unit ? 10 * (unsigned)(unit - units + 1) : 0;
}

/* "2G,5%" gives {2 GiB, 5}; false for anything else. */
static bool parse_min_free(const char *value, struct min_free *least)
{
    *least = (struct min_free){0};
    for (char *end; *value; value = *end ? end + 1 : end) {
        unsigned long long amount = strtoull(value, &end, 10);
        if (end == value)
            return false;
        if (*end != '%')
            least->bytes = amount << unit_bits(&end);
        else if (end++, amount > 100)
            return false;
        else
            least->percent = (unsigned)amount;
        if (*end && *end != ',')
            return false;
    }
    return true;
}

static void read_min_free(const char *value)
{
    if (!value || !*value || !parse_min_free(value, &settings.min_free))
        settings.min_free = (struct min_free){DEFAULT_MIN_FREE_BYTES, DEFAULT_MIN_FREE_PERCENT};
}

/* True if a name can be that of a folder, and one word of a line. */
static bool is_plain(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";
    return *name != '.' && strlen(name) < 200 && strspn(name, letters) == strlen(name);
}

/* NAMES has a second one where there are several. Their samples are as many, with colons between; a single one is that
 * of all. */
static void read_probes(char *const *names, const char *samples)
{
    const bool several = names && names[0] && names[1], own = samples && strchr(samples, ':');
    char *copy = samples ? strdup(samples) : NULL, *unread = copy;
    struct probe_choice *choice = settings.probes;
    do {
        *choice = (struct probe_choice){.name = several ? *names++ : NULL};
        if (!sampling_parse(own ? strsep(&unread, ":") : copy, &choice->sampling))
            choice->sampling.kind = SAMPLE_ALL;
        choice++;
    } while (several && *names && is_plain(*names) && choice < settings.probes + MOST_PROBES);
    settings.n_probes = (size_t)(choice - settings.probes);
    free(copy);
}

/* "0:2" is the first probe and the third. */
static void read_parts(const char *places)
{
    size_t parts = 0;
    for (char *end; places && *places >= '0' && *places <= '9'; places = *end == ':' ? end + 1 : end) {
        const unsigned long place = strtoul(places, &end, 10);
        if (place < settings.n_probes && !settings.probes[place].is_part)
            settings.probes[place].is_part = ++parts > 0;
    }
    settings.fuses = parts > 1;
}

/* A line "KERNEL@N" for each. */
static void read_kept(const char *choices)
{
    char *unread = choices ? strdup(choices) : NULL; /* names stay in it */
    for (char *line; settings.n_kept < MOST_KEPT && (line = strsep(&unread, "\n"));) {
        char *at = strrchr(line, '@');
        if (!at)
            continue;
        *at = '\0';
        settings.kept[settings.n_kept++] = (struct kept_choice){line, strtoull(at + 1, NULL, 10)};
    }
}

static enum machine_code_choice read_machine_code(void)
{
    if (says("TUI_PROBE_MACHINE_CODE", "off"))
        return MACHINE_CODE_OFF;
    return says("TUI_PROBE_MACHINE_CODE", "all") ? MACHINE_CODE_ALL : MACHINE_CODE_AUTO;
}

void settings_read(void)
{
    const char *launcher = given("TUI_PROBE_LAUNCHER");
    settings.trace_root = text("TUI_PROBE_TRACE_ROOT");
    if (launcher && strtol(launcher, NULL, 10) == (long)getppid())
        settings.stamp = text("TUI_PROBE_STAMP");
    settings.engine = text("TUI_PROBE_ENGINE");
    settings.probe = text("TUI_PROBE_PROBE");
    settings.ending = text("TUI_PROBE_ENDING");
    settings.notes = text("TUI_PROBE_NOTES");
    settings.unseen_drivers = text("TUI_PROBE_BESIDE");
    settings.probe_folder = text("TUI_PROBE_PROBE_FOLDER");
    settings.only = substrings("TUI_PROBE_KERNELS");
    settings.never = substrings("TUI_PROBE_FILTER");
    settings.hashed = substrings("TUI_PROBE_HASH_MEMORY");
    settings.capture_range = says("TUI_PROBE_CAPTURE_RANGE", "1");
    settings.nvtx = text("TUI_PROBE_NVTX");
    settings.benchmark = says("TUI_PROBE_BENCHMARK", "1");
    settings.save_results = !settings.benchmark || says("TUI_PROBE_SAVE_RESULTS", "1");
    settings.replays = says("TUI_PROBE_REPLAY", "1");
    read_kept(given("TUI_PROBE_KEEP_LAUNCH"));
    settings.max_kept_bytes = limit("TUI_PROBE_MAX_KEPT_BYTES", DEFAULT_KEPT_BYTES);
    settings.memusage = says("TUI_PROBE_MEMUSAGE", "1");
    settings.detail = number("TUI_PROBE_DETAIL") == 1;
    settings.keep_secrets = number("TUI_PROBE_KEEP_SECRETS") == 1;
    settings.under_ncu = getenv("NV_NSIGHT_INJECTION_PORT_BASE") != NULL /* ncu gives it to what it starts */
                         && !says("TUI_PROBE_UNDER_NCU", "1"); /* tests.bench.stalls_ncu samples probed code */
    settings.times = !settings.under_ncu && !says("TUI_PROBE_TIMES", "0");
    settings.machine_code = read_machine_code();
    settings.lists_allocations = settings.benchmark || settings.replays || settings.n_kept || settings.hashed ||
                                 says("TUI_PROBE_ALLOCATIONS", "1");
    settings.launches_block = given("TUI_PROBE_SIM_PYTHON") || says("CUDA_LAUNCH_BLOCKING", "1");
    settings.runs_ptx = given("TUI_PROBE_SIM_PYTHON") || says("CUDA_FORCE_PTX_JIT", "1");
    settings.simulated_checks = says("TUI_PROBE_SIM_CHECK", "1");
    settings.host_records = says("TUI_PROBE_HOST_RECORDS", "1");
    settings.needs_machine_code = says("TUI_PROBE_NEEDS_SASS", "1");
    settings.graft_faults = text("TUI_PROBE_GRAFT_FAULTS");
    settings.empty_kernels = text("TUI_PROBE_EMPTY_KERNELS");
    settings.engine_timeout = seconds("TUI_PROBE_ENGINE_TIMEOUT", 60);
    settings.exit_timeout = seconds("TUI_PROBE_EXIT_TIMEOUT", 10);
    settings.watchdog = number("TUI_PROBE_WATCHDOG");
    settings.long_launch = number_or("TUI_PROBE_LONG_LAUNCH", DEFAULT_LONG_LAUNCH); /* tests need not wait */
    settings.control = text("TUI_PROBE_CONTROL");
    settings.max_trace_bytes = limit("TUI_PROBE_MAX_TRACE_BYTES", DEFAULT_TRACE_BYTES);
    settings.max_result_files = limit("TUI_PROBE_MAX_RESULT_FILES", DEFAULT_RESULT_FILES);
    settings.max_log_bytes = limit("TUI_PROBE_MAX_LOG_BYTES", DEFAULT_LOG_BYTES);
    settings.max_write_rate = limit("TUI_PROBE_MAX_WRITE_RATE", DEFAULT_WRITE_RATE);
    settings.max_host_memory = number_or("TUI_PROBE_MAX_HOST_MEMORY", DEFAULT_HOST_BYTES);
    read_min_free(given("TUI_PROBE_MIN_FREE_DISK"));
    settings.max_probe_memory = number("TUI_PROBE_MAX_PROBE_MEMORY");
    read_launches(given("TUI_PROBE_LAUNCHES"));
    settings.scheduled = says("TUI_PROBE_LAUNCHES", "auto");
    settings.patient = says("TUI_PROBE_PATIENT", "1");
    settings.graphs = !settings.under_ncu && !says("TUI_PROBE_GRAPHS", "seen");
    settings.node_times = settings.times && says("TUI_PROBE_GRAPHS", "timed");
    read_probes(substrings("TUI_PROBE_PROBES"), given("TUI_PROBE_SAMPLE"));
    read_parts(given("TUI_PROBE_FUSED"));
    settings.heavy = says("TUI_PROBE_WEIGHT", "heavy");
}

static bool contains_any(const char *name, char *const *parts)
{
    for (; parts && *parts; parts++)
        if (strstr(name, *parts))
            return true;
    return false;
}

const struct reason *settings_filter(const char *kernel_name)
{
    if (settings.only && settings.only[0] && !contains_any(kernel_name, settings.only))
        return reason(NOT_CHOSEN);
    if (contains_any(kernel_name, settings.never))
        return reason(EXCLUDED);
    return NULL;
}

bool settings_selects_launch(uint64_t n)
{
    if (settings.n_launches == 0)
        return true;
    for (size_t i = 0; i < settings.n_launches; i++)
        if (n >= settings.launches[i].first && n <= settings.launches[i].last)
            return true;
    return false;
}
