#define _GNU_SOURCE
#include "run_notes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "own_file.h"
#include "settings.h"

enum { LINE_SIZE = NAME_MAX + 512 };

static struct own_file notes = NO_OWN_FILE;

void run_notes_open(void)
{
    if (settings.notes)
        own_file_take(&notes, open(settings.notes, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
}

void run_note(const char *word, const char *text)
{
    char line[LINE_SIZE];
    const int caller_errno = errno;
    int length = snprintf(line, sizeof line, "%d %s %s\n", (int)getpid(), word, text);
    if (length >= (int)sizeof line) {
        length = sizeof line - 1;
        line[length - 1] = '\n';
    }
    if (own_file_number(&notes) < 0) /* a daemon closes all descriptors */
        run_notes_open();
    if (own_file_number(&notes) >= 0 && !own_file_write_all(&notes, line, (size_t)length))
        own_file_close(&notes); /* a full disk: then the launcher does not learn of it */
    errno = caller_errno;
}
