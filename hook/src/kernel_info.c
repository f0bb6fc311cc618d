#include "kernel_info.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reasons.h"

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

/* "type,bytes" */
static bool read_map(const char *line, struct map *map)
{
    long level, bytes;
    char rest;
    if (!line || sscanf(line, "%ld,%ld%c", &level, &bytes, &rest) != 2 || (level != MAP_THREAD && level != MAP_WARP) ||
        bytes <= 0 || bytes > UINT32_MAX)
        return false;
    map->level = (enum map_level)level;
    map->bytes = (uint32_t)bytes;
    return true;
}

static bool add_global(struct kernel *kernel, const char *name)
{
    char **grown = realloc(kernel->globals, (kernel->n_globals + 1) * sizeof *grown);
    if (!grown)
        return false;
    kernel->globals = grown;
    grown[kernel->n_globals] = strdup(name);
    return grown[kernel->n_globals++] != NULL;
}

static bool read_rest(struct reader *reader, struct kernel *kernel)
{
    char *line;
    while ((line = next_line(reader))) {
        if (strncmp(line, "global ", 7) == 0 && !add_global(kernel, line + 7))
            return false;
        if (strncmp(line, "no-replay ", 10) == 0 && !kernel->no_replay)
            kernel->no_replay = strdup(line + 10);
    }
    return true;
}

static const char *read_all(struct reader *reader, struct kernel *kernel)
{
    size_t parameters;
    const char *name = next_line(reader);
    if (!name || strcmp(name, kernel->name) != 0)
        return "kernel.info is about another kernel";
    if (!next_count(reader, &parameters) || !next_count(reader, &kernel->n_maps))
        return "kernel.info has no counts";
    if (kernel->parameters_known && kernel->n_parameters != parameters)
        return reason_print("kernel.info has %zu parameters, the driver %zu", parameters, kernel->n_parameters);
    kernel->n_parameters = parameters;
    kernel->maps = calloc(kernel->n_maps + 1, sizeof *kernel->maps);
    if (!kernel->maps)
        return "out of host memory";
    for (size_t i = 0; i < kernel->n_maps; i++)
        if (!read_map(next_line(reader), &kernel->maps[i]))
            return "kernel.info has a map that is not type,bytes with bytes above 0";
    if (!read_rest(reader, kernel))
        return "out of host memory";
    if (parameters + kernel->n_maps + kernel->n_globals >= KERNEL_ARGUMENTS_LIMIT)
        return reason_print("more than %d parameters", KERNEL_ARGUMENTS_LIMIT);
    return NULL;
}

const char *kernel_info_read(const char *path, struct kernel *kernel)
{
    struct reader reader = {.file = fopen(path, "re")};
    if (!reader.file)
        return reason_print("%s: %s", path, strerror(errno));
    const char *reason = read_all(&reader, kernel);
    free(reader.line);
    fclose(reader.file);
    return reason;
}
