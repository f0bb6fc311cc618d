#include "given.h"

#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GROWTH = 1 << 16, MOST = 8 << 20 };

/* Is there in every process of a run. */
static const char always[] = "TUI_PROBE_TRACE_ROOT";

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char *first; /* the environment of the start: NAME=VALUE, each with its NUL */
static size_t size;

static void read_first(void)
{
    const int file = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
    for (ssize_t n = 1; file >= 0 && n > 0 && size < MOST; size += n > 0 ? (size_t)n : 0) {
        char *grown = realloc(first, size + GROWTH + 1);
        if (!grown)
            break;
        first = grown;
        n = read(file, first + size, GROWTH);
    }
    if (first)
        first[size] = '\0';
    if (file >= 0)
        close(file);
}

static const char *started_with(const char *name)
{
    const size_t length = strlen(name);
    pthread_once(&once, read_first);
    for (const char *at = first; at && at < first + size; at += strlen(at) + 1)
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    return NULL;
}

const char *given(const char *name)
{
    const char *value = getenv(name);
    return value || getenv(always) ? value : started_with(name);
}
