#include "result_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "buffers.h"
#include "capacities.h"
#include "convert.h"
#include "disk.h"
#include "event_log.h"
#include "own_file.h"
#include "result.h"
#include "rotation.h"
#include "schedule.h"

enum {
    HEADER_BYTES = 8 * sizeof(uint32_t),
    MAP_BYTES = 2 * sizeof(uint32_t) + sizeof(uint64_t),
    SECOND_BYTES = 64 << 10
};

#define ABOUT_MAGIC "records\1"
#define SAMPLE_MAGIC "sampled\1"

/* The trailer of a file about each map, behind the last one, aligned to 8 bytes, unless all are plain; the marks
 * follow. */
struct about_map {
    uint32_t kind; /* ABOUT_… */
    uint32_t record;
    uint64_t marks; /* bytes; of sites, those of their sums; of a reduced map, those of all that is left of it */
};

enum { ABOUT_PLAIN, ABOUT_MARKED, ABOUT_COUNTED, ABOUT_COUNTS, ABOUT_SITES, ABOUT_REDUCED };

/* The end of a file where only some blocks were measured, aligned to 8 bytes: the grid in its header is a row of
 * these only. */
struct about_sample {
    char magic[sizeof SAMPLE_MAGIC - 1];
    uint32_t grid[3], first, step, count;
};

/* A file under way. */
struct saving {
    const struct own_file *file;
    const struct piece *piece;
    const struct result_source *source;
    struct extent extent;
    uint32_t *caps; /* records per slot in the file, where a map is dynamic: no more than some slot has */
    uint64_t about_at, marks_at, sample_at, size; /* about_at, sample_at 0: there is none */
    uint64_t largest, total; /* of the probe's least share; total 0: unknown */
    struct output records, second;
};

static uint32_t device_cap(const struct saving *s, size_t map)
{
    return layout_cap(s->piece->probe, map, s->piece->capacities);
}

static uint32_t cap_of(const struct saving *s, size_t map)
{
    return s->caps ? s->caps[map] : device_cap(s, map);
}

static size_t device_bytes(const struct saving *s, size_t map)
{
    size_t size = 0;
    layout_device_map(s->piece->probe, map, s->piece->capacities, s->piece->grid, s->piece->block, &size);
    return size;
}

static size_t source_bytes(const struct saving *s, size_t map)
{
    return (size_t)layout_source_size(&s->piece->probe->maps[map], &s->extent, device_bytes(s, map));
}

static uint64_t file_bytes(const struct saving *s, size_t map)
{
    uint64_t bytes = 0;
    layout_file_bytes(&s->piece->probe->maps[map], cap_of(s, map), &s->extent, &bytes);
    return bytes;
}

static bool is_reduced(const struct saving *s, size_t map)
{
    return layout_reduces(&s->piece->probe->maps[map], &s->extent);
}

static bool has_marks(const struct map *map)
{
    return map->layout == MAP_MARKED || map->layout == MAP_RESIDENT;
}

static uint64_t marks_bytes(const struct saving *s, size_t map)
{
    const struct map *m = &s->piece->probe->maps[map];
    if (is_reduced(s, map))
        return layout_reduced(m, &s->extent);
    if (m->layout == MAP_SITES)
        return layout_sites(m);
    return has_marks(m) ? (s->extent.blocks * layout_slots(m, &s->extent) + 7) / 8 : 0;
}

static void measure(struct saving *s)
{
    const size_t n = s->piece->probe->n_maps;
    uint64_t marks = 0, end = HEADER_BYTES + MAP_BYTES * n;
    bool plain = true;
    for (size_t i = 0; i < n; i++) {
        end += file_bytes(s, i);
        marks += marks_bytes(s, i);
        plain = plain && s->piece->probe->maps[i].layout == MAP_PLAIN && !is_reduced(s, i);
    }
    s->size = end;
    if (plain && !s->extent.is_sample)
        return;
    s->about_at = (end + 7) / 8 * 8;
    s->marks_at = s->about_at + sizeof ABOUT_MAGIC - 1 + n * sizeof(struct about_map);
    s->size = s->marks_at + marks;
    if (s->extent.is_sample) {
        s->sample_at = (s->size + 7) / 8 * 8;
        s->size = s->sample_at + sizeof(struct about_sample);
    }
}

static bool write_header(struct saving *s)
{
    const struct piece *piece = s->piece;
    const struct kernel_probe *probe = piece->probe;
    const uint32_t row[3] = {(uint32_t)s->extent.blocks, 1, 1}, *grid = s->extent.is_sample ? row : piece->grid;
    uint32_t header[8] = {grid[0],         grid[1],         grid[2],       piece->block[0],
                          piece->block[1], piece->block[2], piece->shared, (uint32_t)probe->n_maps};
    uint64_t offset = HEADER_BYTES + MAP_BYTES * probe->n_maps;
    if (!output_append(&s->records, header, sizeof header))
        return false;
    for (size_t i = 0; i < probe->n_maps; i++) {
        struct {
            uint32_t bytes, threads;
            uint64_t offset;
        } entry = {is_reduced(s, i) ? 0 : (uint32_t)layout_slot(&probe->maps[i], cap_of(s, i)),
                   probe->maps[i].level == MAP_WARP ? WARP_THREADS : 1, offset};
        if (!output_append(&s->records, &entry, sizeof entry))
            return false;
        offset += file_bytes(s, i);
    }
    return true;
}

static uint32_t kind_of(const struct map *map)
{
    switch (map->layout) {
    case MAP_MARKED:
    case MAP_RESIDENT:
        return ABOUT_MARKED;
    case MAP_ROWS:
    case MAP_QUEUE:
        return ABOUT_COUNTED;
    case MAP_COUNTS:
        return ABOUT_COUNTS;
    case MAP_SITES:
        return ABOUT_SITES;
    default:
        return ABOUT_PLAIN;
    }
}

static bool write_about(struct saving *s)
{
    const struct kernel_probe *probe = s->piece->probe;
    s->second.at = s->about_at;
    if (!s->about_at)
        return true;
    bool written = output_append(&s->second, ABOUT_MAGIC, sizeof ABOUT_MAGIC - 1);
    for (size_t i = 0; i < probe->n_maps && written; i++) {
        struct about_map about = {kind_of(&probe->maps[i]), probe->maps[i].record, marks_bytes(s, i)};
        if (is_reduced(s, i)) {
            about.kind = ABOUT_REDUCED;
            about.record = probe->maps[i].reduction->record;
        }
        written = output_append(&s->second, &about, sizeof about);
    }
    return written && output_flush(&s->second);
}

static bool write_sample(struct saving *s)
{
    const struct sampled *sampled = &s->extent.sampled;
    struct about_sample about = {.first = (uint32_t)sampled->first,
                                 .step = (uint32_t)sampled->step,
                                 .count = (uint32_t)sampled->count};
    memcpy(about.magic, SAMPLE_MAGIC, sizeof about.magic);
    memcpy(about.grid, s->piece->grid, sizeof about.grid);
    return !s->sample_at || output_write(s->file, s->sample_at, &about, sizeof about);
}

static struct conversion conversion_of(struct saving *s, size_t map, uint64_t from)
{
    return (struct conversion){.map = &s->piece->probe->maps[map],
                               .cap = device_cap(s, map),
                               .file_cap = cap_of(s, map),
                               .extent = s->extent,
                               .source = s->source,
                               .from = from,
                               .records = &s->records,
                               .second = &s->second};
}

/* Without memory for it the file becomes larger than it need be. */
static bool find_caps(struct saving *s)
{
    const struct kernel_probe *probe = s->piece->probe;
    uint32_t *caps = probe->dynamic ? malloc(probe->n_maps * sizeof *caps) : NULL;
    uint64_t from = s->piece->offset;
    bool known = true;
    for (size_t i = 0; caps && i < probe->n_maps && known; i++) {
        struct conversion conversion = conversion_of(s, i, from);
        caps[i] = conversion.cap;
        known = probe->maps[i].cap || convert_count(&conversion, &caps[i]);
        from += source_bytes(s, i);
    }
    s->caps = caps;
    return known;
}

/* Counts are those of the map before them, and written with it. */
static bool write_map(struct saving *s, size_t map, uint64_t from, uint64_t marks_at)
{
    struct kernel_probe *probe = s->piece->probe;
    const bool marked = has_marks(&probe->maps[map]) || probe->maps[map].layout == MAP_SITES || is_reduced(s, map);
    const uint64_t end = s->records.at + s->records.used + file_bytes(s, map);
    struct conversion conversion = conversion_of(s, map, from);
    s->second.at = marked ? marks_at : end;
    if (!convert_map(&conversion) || !output_flush(&s->second))
        return false;
    if (map == probe->least.sites)
        s->largest = conversion.first;
    else if (map == probe->least.whole)
        s->total = is_reduced(s, map) ? conversion.first : 0;
    if (!probe->maps[map].cap && conversion.most > conversion.cap && capacities_grow(probe, map, conversion.most) &&
        s->piece->group) {
        rotation_first(probe, s->piece->grid, s->piece->block, s->piece->shared);
        schedule_again(s->piece->group);
    }
    return true;
}

static bool write_maps(struct saving *s)
{
    const struct kernel_probe *probe = s->piece->probe;
    uint64_t from = s->piece->offset, marks_at = s->marks_at;
    for (size_t i = 0; i < probe->n_maps; i++) {
        if (probe->maps[i].layout == MAP_COUNTS) {
            if (!output_flush(&s->records))
                return false;
            s->records.at += file_bytes(s, i);
            continue;
        }
        if (!write_map(s, i, from, marks_at))
            return false;
        from += source_bytes(s, i);
        marks_at += marks_bytes(s, i);
    }
    return output_flush(&s->records) && write_about(s) && write_sample(s);
}

/* Other probes of the kernel have the turns of one that found nothing of note. */
static void end_turns(const struct saving *s)
{
    const struct piece *piece = s->piece;
    const unsigned percent = piece->probe->least.percent;
    if (percent && s->total && s->largest * 100 < percent * s->total &&
        rotation_end(piece->probe, piece->grid, piece->block, piece->shared))
        event_log("[probe] ended kernel %u launch %llu probe %s\n", piece->probe->kernel->index,
                  (unsigned long long)piece->number, piece->probe->name);
}

static bool write_all(struct saving *s)
{
    const size_t capacity = s->size < CONVERT_BYTES ? (size_t)s->size : CONVERT_BYTES;
    bool written = output_begin(&s->records, s->file, 0, capacity) &&
                   output_begin(&s->second, s->file, 0, SECOND_BYTES) && write_header(s) && write_maps(s);
    output_end(&s->records);
    output_end(&s->second);
    return written;
}

/* False if the source refused. */
static bool begin(struct saving *s, const struct own_file *file, const struct piece *piece,
                  const struct result_source *source)
{
    *s = (struct saving){.file = file, .piece = piece, .source = source};
    layout_extent(&s->extent, piece->probe, piece->capacities, piece->grid, piece->block);
    bool known = find_caps(s);
    measure(s);
    return known;
}

bool result_file_write(const struct own_file *file, const struct piece *piece, const struct result_source *source,
                       _Atomic(const struct reason *) *stopped, uint64_t *size)
{
    struct saving s;
    bool written = begin(&s, file, piece, source) && disk_admits(s.size, stopped) &&
                   own_file_resize(file, (off_t)s.size) && write_all(&s);
    if (written)
        end_turns(&s);
    *size = s.size;
    free(s.caps);
    return written;
}

void result_file_learn(const struct piece *piece, const struct result_source *source)
{
    struct own_file nowhere;
    if (!own_file_take(&nowhere, open("/dev/null", O_WRONLY | O_CLOEXEC)))
        return;
    struct saving s;
    if (begin(&s, &nowhere, piece, source))
        write_all(&s);
    free(s.caps);
    own_file_close(&nowhere);
}

uint64_t result_file_head(const struct kernel_probe *probe)
{
    return HEADER_BYTES + MAP_BYTES * probe->n_maps;
}
