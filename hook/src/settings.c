#include "settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_TRACE_BYTES (1ull << 30)
#define DEFAULT_MIN_FREE_BYTES (2ull << 30)
enum { DEFAULT_MIN_FREE_PERCENT = 5 };

struct settings settings;

static const char *text(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? strdup(value) : NULL;
}

static uint64_t number_or(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value && *value ? strtoull(value, NULL, 10) : otherwise;
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
    char *copy = strdup(value), *rest = copy;
    size_t used = 0;
    for (char *part; list && copy && (part = strsep(&rest, ":"));)
        if (*part)
            list[used++] = part;
    free((void *)(uintptr_t)value);
    return list;
}

static bool says(const char *name, const char *word)
{
    const char *value = getenv(name);
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

void settings_read(void)
{
    const char *launcher = getenv("TUI_PROBE_LAUNCHER");
    settings.trace_root = text("TUI_PROBE_TRACE_ROOT");
    if (launcher && strtol(launcher, NULL, 10) == (long)getppid())
        settings.stamp = text("TUI_PROBE_STAMP");
    settings.engine = text("TUI_PROBE_ENGINE");
    settings.probe = text("TUI_PROBE_PROBE");
    settings.only = substrings("TUI_PROBE_KERNELS");
    settings.never = substrings("TUI_PROBE_FILTER");
    settings.benchmark = says("TUI_PROBE_BENCHMARK", "1");
    settings.detail = number("TUI_PROBE_DETAIL") == 1;
    settings.engine_timeout = seconds("TUI_PROBE_ENGINE_TIMEOUT", 60);
    settings.exit_timeout = seconds("TUI_PROBE_EXIT_TIMEOUT", 10);
    settings.max_trace_bytes = number_or("TUI_PROBE_MAX_TRACE_BYTES", DEFAULT_TRACE_BYTES);
    read_min_free(getenv("TUI_PROBE_MIN_FREE_DISK"));
    settings.max_probe_memory = number("TUI_PROBE_MAX_PROBE_MEMORY");
    read_launches(getenv("TUI_PROBE_LAUNCHES"));
    settings.scheduled = says("TUI_PROBE_LAUNCHES", "auto");
    if (!sampling_parse(getenv("TUI_PROBE_SAMPLE"), &settings.sampling))
        settings.sampling.kind = SAMPLE_ALL;
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
