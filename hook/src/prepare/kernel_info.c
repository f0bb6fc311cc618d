#include "kernel_info.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capacities.h"
#include "reasons.h"
#include "reduce.h"
#include "sampling.h"
#include "settings.h"

const char *way_name(enum way way)
{
    return way == WAY_GRAFT ? "graft" : "ptx";
}

struct reader {
    FILE *file;
    char *line;
    size_t capacity;
};

/* The next line without its newline, or NULL at the end. */
static char *next_line(struct reader *reader)
{
    ssize_t n = getline(&reader->line, &reader->capacity, reader->file);
    if (n <= 0)
        return NULL;
    if (reader->line[n - 1] == '\n')
        reader->line[n - 1] = '\0';
    return reader->line;
}

static bool next_count(struct reader *reader, size_t *count)
{
    char *line = next_line(reader), *end;
    if (!line || *line < '0' || *line > '9')
        return false;
    *count = strtoul(line, &end, 10);
    return *end == '\0' && *count <= KERNEL_ARGUMENTS_LIMIT;
}

/* "type,bytes"; with 0 or -1 bytes there is a storage line to come. */
static bool read_map(const char *line, struct map *map)
{
    long level, bytes;
    char rest;
    if (!line || sscanf(line, "%ld,%ld%c", &level, &bytes, &rest) != 2 || (level != MAP_THREAD && level != MAP_WARP) ||
        bytes < -1 || bytes > UINT32_MAX)
        return false;
    map->level = (enum map_level)level;
    map->record = bytes < 0 ? 0 : (uint32_t)bytes;
    map->cap = 1;
    return true;
}

/* A cap of sites is how many there are. TEXT may end with the field whose largest value counts. */
static bool become_sites(struct map *map, unsigned long copies, const char *text)
{
    enum { MOST_COPIES = 4096 };
    map->sites = map->cap;
    map->cap = 1;
    map->copies = (uint32_t)copies;
    map->max = map->record;
    const char *max = strstr(text, " max ");
    if (max && (sscanf(max, " max %" SCNu32, &map->max) != 1 || map->max >= map->record || map->max % sizeof(uint64_t)))
        return false;
    return map->level == MAP_WARP && copies && copies <= MOST_COPIES && map->record % sizeof(uint64_t) == 0;
}

/* Reads the rest of a line behind "storage ": "INDEX LAYOUT record BYTES cap N", of sites with "copies N" and perhaps
 * "max OFFSET", of rows with "even" or without, or "INDEX counts". */
static bool read_storage(const char *text, struct kernel_probe *probe)
{
    static const char *const names[] = {"plain", "marked", "rows", "queue", "counts", "sites", "folded", "resident"};
    enum { LAYOUTS = sizeof names / sizeof *names, LARGEST_RECORD = 4096 };
    unsigned long index, record = 0, cap = 0, copies = 0;
    char name[16] = "";
    int n_fields = sscanf(text, "%lu %15s record %lu cap %lu copies %lu", &index, name, &record, &cap, &copies);
    size_t layout = 0;
    while (layout < LAYOUTS && strcmp(names[layout], name) != 0)
        layout++;
    if (n_fields < 2 || index >= probe->n_maps || layout == LAYOUTS)
        return false;
    struct map *map = &probe->maps[index];
    const bool no_bytes = map->record == 0;
    map->layout = (enum map_layout)layout;
    if (map->layout == MAP_COUNTS)
        return map->record == sizeof(uint32_t);
    if (n_fields < 4 || !record || record % 4 || record > LARGEST_RECORD || cap > UINT32_MAX)
        return false;
    map->record = (uint32_t)record;
    map->cap = (uint32_t)cap;
    const char *even = strstr(text, " even");
    map->even = even != NULL;
    probe->resident = probe->resident || map->layout == MAP_RESIDENT;
    if (even && (even[strlen(" even")] || map->layout != MAP_ROWS || record != EVEN_RECORD_BYTES))
        return false;
    return map->layout == MAP_SITES ? no_bytes && become_sites(map, copies, text) : n_fields == 4;
}

/* Reads the rest of a line behind "reduce ": "INDEX " and what reduction_parse reads. It comes behind the storage line
 * of its map. */
static bool read_reduction(const char *text, struct kernel_probe *probe)
{
    unsigned long index;
    int length = 0;
    if (sscanf(text, "%lu %n", &index, &length) != 1 || !length || index >= probe->n_maps)
        return false;
    struct map *map = &probe->maps[index];
    const bool slots = map->layout == MAP_PLAIN || map->layout == MAP_MARKED || map->layout == MAP_FOLDED;
    const bool may = slots && map->cap == 1 && !map->reduction;
    map->reduction = may ? reduction_parse(text + length, map->record) : NULL;
    if (map->layout == MAP_FOLDED && map->reduction && map->reduction->level != REDUCE_LAUNCH)
        return false;
    return map->reduction && (map->reduction->level != REDUCE_WARP || map->level == MAP_THREAD);
}

/* Reads the rest of a line behind "least ": "SITES percent P of WHOLE", behind the lines of both maps. */
static bool read_least(const char *text, struct kernel_probe *probe)
{
    unsigned long sites, whole;
    unsigned percent;
    if (sscanf(text, "%lu percent %u of %lu", &sites, &percent, &whole) != 3 || sites >= probe->n_maps ||
        whole >= probe->n_maps || !percent || percent > 100)
        return false;
    const struct reduction *reduction = probe->maps[whole].reduction;
    probe->least = (struct least_share){sites, whole, percent};
    return probe->maps[sites].layout == MAP_SITES && reduction && reduction->level == REDUCE_LAUNCH &&
           reduction->fields[0].to.wide && !reduction->fields[0].to.offset;
}

/* Counts are behind the map that they are of, and only there; no other map may be dynamic. */
static bool maps_make_sense(const struct kernel_probe *probe)
{
    for (size_t i = 0; i < probe->n_maps; i++) {
        const struct map *map = &probe->maps[i], *next = i + 1 < probe->n_maps ? map + 1 : NULL;
        bool counted = map->layout == MAP_ROWS || map->layout == MAP_QUEUE;
        if (counted != (next && next->layout == MAP_COUNTS) || (counted && next->level != map->level) ||
            (!counted && !map->cap) || (map->layout == MAP_ROWS && map->level != MAP_THREAD) ||
            (map->layout == MAP_QUEUE && map->level != MAP_WARP) || !map->record ||
            (map->layout == MAP_FOLDED && (map->level != MAP_WARP || !map->reduction)) ||
            (map->layout == MAP_RESIDENT && (map->level != MAP_WARP || map->cap != 1)))
            return false;
    }
    return !probe->n_maps || probe->maps[0].layout != MAP_COUNTS;
}

static bool read_global(const char *name, struct kernel_probe *probe)
{
    char **grown = realloc(probe->globals, (probe->n_globals + 1) * sizeof *grown);
    if (!grown)
        return false;
    probe->globals = grown;
    grown[probe->n_globals] = strdup(name);
    return grown[probe->n_globals++] != NULL;
}

static bool read_way(const char *text, struct kernel_probe *probe)
{
    const bool is_graft = strcmp(text, way_name(WAY_GRAFT)) == 0;
    if (is_graft)
        probe->way = WAY_GRAFT;
    return is_graft || strcmp(text, way_name(WAY_PTX)) == 0;
}

/* A number without a sign, to its very end or to a blank. */
static bool read_number(const char **text, uint64_t *number)
{
    char *end;
    errno = 0;
    if (**text < '0' || **text > '9')
        return false;
    *number = strtoull(*text, &end, 0);
    const bool ends = *end == ' ' || !*end;
    *text = *end ? end + 1 : end;
    return ends && !errno;
}

/* Reads the rest of a line behind "patch ": "KIND FILE_OFFSET ADDEND NAME". The addend may be below 0. */
static bool read_patch(const char *text, struct kernel_probe *probe)
{
    static const char *const names[] = {"abs64", "abs32lo", "abs32hi"};
    enum { KINDS = sizeof names / sizeof *names };
    struct patch patch = {0};
    const char *blank = strchr(text, ' ');
    int kind = 0;
    const size_t length = blank ? (size_t)(blank - text) : 0;
    while (kind < KINDS && (strlen(names[kind]) != length || strncmp(names[kind], text, length) != 0))
        kind++;
    text += length + 1;
    if (kind == KINDS || !read_number(&text, &patch.offset))
        return false;
    const bool negative = *text == '-';
    text += negative;
    if (!read_number(&text, &patch.addend) || !*text || strchr(text, ' '))
        return false;
    patch.kind = (enum patch_kind)kind;
    patch.addend = negative ? -patch.addend : patch.addend;
    struct patch *grown = realloc(probe->patches, (probe->n_patches + 1) * sizeof *grown);
    if (!grown)
        return false;
    probe->patches = grown;
    if (!(patch.variable = strdup(text)))
        return false;
    grown[probe->n_patches++] = patch;
    return true;
}

/* Reads the rest of a line behind "constant ": "NAME SIZE". */
static bool read_constant(const char *text, struct kernel_probe *probe)
{
    enum { CONSTANT_BANK = 64 << 10 };
    const char *blank = strchr(text, ' '), *number = blank ? blank + 1 : "";
    uint64_t size;
    if (!blank || blank == text || !read_number(&number, &size) || *number || !size || size > CONSTANT_BANK)
        return false;
    struct constant *grown = realloc(probe->constants, (probe->n_constants + 1) * sizeof *grown);
    if (!grown)
        return false;
    probe->constants = grown;
    grown[probe->n_constants] = (struct constant){strndup(text, (size_t)(blank - text)), (size_t)size};
    return grown[probe->n_constants++].variable != NULL;
}

/* The first note counts. */
static bool read_note(const char *text, struct kernel_probe *probe)
{
    if (!probe->note)
        probe->note = reason_read(text);
    return true;
}

static bool read_no_replay(const char *text, struct kernel_probe *probe)
{
    if (!probe->no_replay)
        probe->no_replay = reason_read(text);
    return true;
}

/* A line that begins with WORD and a blank; READ gets the rest of it. FAULT is what is wrong with it where that
 * returns false; NULL: there is no memory. */
static const struct {
    const char *word;
    bool (*read)(const char *text, struct kernel_probe *probe);
    const char *fault;
} line_kinds[] = {
    {"storage", read_storage, "has a 'storage' line of an unknown form"},
    {"reduce", read_reduction, "has a 'reduce' line of an unknown form"},
    {"least", read_least, "has a 'least' line of an unknown form"},
    {"way", read_way, "names an unknown mode"},
    {"patch", read_patch, "has a 'patch' line of an unknown form"},
    {"constant", read_constant, "has a 'constant' line of an unknown form"},
    {"global", read_global, NULL},
    {"note", read_note, NULL},
    {"no-replay", read_no_replay, NULL},
};

/* Lines of other kinds are for other readers. */
static const struct reason *read_line(const char *line, struct kernel_probe *probe)
{
    for (size_t i = 0; i < sizeof line_kinds / sizeof *line_kinds; i++) {
        const size_t length = strlen(line_kinds[i].word);
        if (strncmp(line, line_kinds[i].word, length) != 0 || line[length] != ' ')
            continue;
        if (line_kinds[i].read(line + length + 1, probe))
            return NULL;
        return line_kinds[i].fault ? reason_with(KERNEL_INFO, line_kinds[i].fault) : reason(HOST_MEMORY);
    }
    return NULL;
}

static const struct reason *read_rest(struct reader *reader, struct kernel_probe *probe)
{
    const char *line;
    while ((line = next_line(reader))) {
        const struct reason *reason = read_line(line, probe);
        if (reason)
            return reason;
        probe->sampled = probe->sampled || strcmp(line, "blocks sampled") == 0;
        probe->reads_allocations = probe->reads_allocations || strcmp(line, "allocations") == 0;
        probe->independent = probe->independent || strcmp(line, "blocks independent") == 0;
    }
    if (!maps_make_sense(probe))
        return reason_with(KERNEL_INFO, "has storage lines that do not match its maps");
    return capacities_begin(probe) ? NULL : reason(HOST_MEMORY);
}

static const struct reason *parameters_differ(size_t described, size_t known)
{
    char texts[2][REASON_NUMBER_SIZE];
    return reason_with(PARAMETERS_DIFFER, reason_number(texts[0], described), reason_number(texts[1], known));
}

static const struct reason *too_many_parameters(void)
{
    char limit[REASON_NUMBER_SIZE];
    return reason_with(TOO_MANY_PARAMETERS, reason_number(limit, KERNEL_ARGUMENTS_LIMIT));
}

static const struct reason *read_all(struct reader *reader, struct kernel_probe *probe)
{
    struct kernel *kernel = probe->kernel;
    size_t parameters;
    const char *name = next_line(reader);
    if (!name || strcmp(name, kernel->name) != 0)
        return reason_with(KERNEL_INFO, "belongs to another kernel");
    if (!next_count(reader, &parameters) || !next_count(reader, &probe->n_maps))
        return reason_with(KERNEL_INFO, "has no counts");
    if (kernel->parameters_known && kernel->n_parameters != parameters)
        return parameters_differ(parameters, kernel->n_parameters);
    if (kernel->n_parameters != parameters)
        kernel->n_parameters = parameters;
    probe->detail = settings.detail;
    probe->maps = calloc(probe->n_maps + 1, sizeof *probe->maps);
    if (!probe->maps)
        return reason(HOST_MEMORY);
    for (size_t i = 0; i < probe->n_maps; i++)
        if (!read_map(next_line(reader), &probe->maps[i]))
            return reason_with(KERNEL_INFO, "has a map whose line is not of the form LEVEL,BYTES");
    const struct reason *reason = read_rest(reader, probe);
    if (reason)
        return reason;
    if (parameters + probe->n_maps + LAUNCH_PARAMETERS + probe->n_globals >= KERNEL_ARGUMENTS_LIMIT)
        return too_many_parameters();
    return NULL;
}

const struct reason *kernel_info_read(const char *path, struct kernel_probe *probe)
{
    struct reader reader = {.file = fopen(path, "re")};
    if (!reader.file)
        return reason_of_file(path, errno);
    const struct reason *reason = read_all(&reader, probe);
    free(reader.line);
    fclose(reader.file);
    return reason;
}

static bool are_equal(const struct kernel_probe *a, const struct kernel_probe *b, bool sampled)
{
    bool equal = b->sampled == sampled && a->n_maps == b->n_maps && a->n_globals == b->n_globals;
    for (size_t i = 0; i < a->n_maps && equal; i++) {
        const struct map *x = &a->maps[i], *y = &b->maps[i];
        equal = x->level == y->level && x->layout == y->layout && x->record == y->record && x->cap == y->cap &&
                x->sites == y->sites && x->copies == y->copies;
    }
    for (size_t i = 0; i < a->n_globals && equal; i++)
        equal = strcmp(a->globals[i], b->globals[i]) == 0;
    return equal;
}

static void let_go(struct kernel_probe *probe)
{
    for (size_t i = 0; i < probe->n_maps && probe->maps; i++)
        free(probe->maps[i].reduction);
    for (size_t i = 0; i < probe->n_globals; i++)
        free(probe->globals[i]);
    free(probe->globals);
    free(probe->maps);
    free(atomic_load(&probe->capacities));
}

const struct reason *kernel_info_agrees(const char *path, const struct kernel_probe *probe, bool sampled)
{
    struct kernel_probe form = {.kernel = probe->kernel};
    const struct reason *reason = kernel_info_read(path, &form);
    if (!reason && !are_equal(probe, &form, sampled))
        reason = reason_with(KERNEL_INFO, "of another variant of the probe has other maps");
    let_go(&form);
    return reason;
}
