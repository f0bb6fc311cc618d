#define _GNU_SOURCE
#include "graft_faults.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chunk.h"
#include "errors.h"
#include "event_log.h"
#include "own_file.h"
#include "settings.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char **names; /* NULL-terminated; NULL: there are none */

/* Lines are "ERROR SECONDS NAME": the number of the driver's error, the time since 1970, and the kernel's name. */
static char *name_in(char *line)
{
    char *name = strchr(line, ' ');
    name = name ? strchr(name + 1, ' ') : NULL;
    line[strcspn(line, "\n")] = '\0';
    return name && name[1] ? name + 1 : NULL;
}

static void read_names(void)
{
    FILE *file = settings.graft_faults ? fopen(settings.graft_faults, "re") : NULL;
    char *line = NULL;
    size_t capacity = 0, n = 0;
    while (file && getline(&line, &capacity, file) > 0) {
        const char *name = name_in(line);
        char **grown = name ? realloc(names, (n + 2) * sizeof *grown) : NULL;
        if (!grown)
            continue;
        names = grown;
        names[n] = strdup(name);
        n += names[n] != NULL;
        names[n] = NULL;
    }
    free(line);
    if (file)
        fclose(file);
}

const struct reason *graft_faults_refuse(const char *kernel)
{
    pthread_once(&once, read_names);
    for (char *const *name = names; name && *name; name++)
        if (strcmp(*name, kernel) == 0)
            return reason_with(GRAFT_FAULTED, settings.graft_faults);
    return NULL;
}

static void write_name(const struct own_file *file, const char *name, CUresult error)
{
    char *line;
    int length = asprintf(&line, "%d %lld %s\n", error, (long long)time(NULL), name);
    if (length < 0)
        return;
    if (own_file_write_all(file, line, (size_t)length))
        event_log("[exec] graft left out from now on, for %s: %s\n", reason_error_name(error), name);
    free(line);
}

void graft_faults_note(const struct chunk *chunk, CUresult error)
{
    struct own_file file = NO_OWN_FILE;
    if (!settings.graft_faults || !error_is_fault(error))
        return;
    for (size_t i = 0; i < chunk->n_pieces; i++) {
        const struct piece *piece = &chunk->pieces[i];
        if (piece->void_launch || piece->probe->way != WAY_GRAFT || chunk_had_kernel(chunk, i))
            continue;
        if (file.number < 0)
            own_file_take(&file, open(settings.graft_faults, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
        if (file.number >= 0)
            write_name(&file, piece->probe->kernel->name, error);
    }
    own_file_close(&file);
}
