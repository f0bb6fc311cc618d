#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "given.h"

struct report {
    struct report *next;
    char line[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct report *reports;

static bool is_new(const char *line)
{
    for (const struct report *report = reports; report; report = report->next) {
        if (strcmp(report->line, line) == 0)
            return false;
    }
    struct report *report = malloc(sizeof *report + strlen(line) + 1);
    if (report) {
        strcpy(report->line, line);
        report->next = reports;
        reports = report;
    }
    return true;
}

static void write_line(int file, const char *line)
{
    for (size_t left = strlen(line); left;) {
        ssize_t written = write(file, line, left);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return;
        line += written;
        left -= (size_t)written;
    }
}

static void append_to_log(const char *line)
{
    const char *path = given("TUI_PROBE_SIM_LOG");
    if (!path || !*path)
        return;
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0)
        return;
    write_line(file, line);
    close(file);
}

void report(const char *format, ...)
{
    char line[4096] = "tui-probe simulated GPU: ";
    size_t start = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + start, sizeof line - start - 1, format, arguments);
    va_end(arguments);
    strcat(line, "\n");
    pthread_mutex_lock(&lock);
    if (is_new(line)) {
        write_line(STDERR_FILENO, line);
        append_to_log(line);
    }
    pthread_mutex_unlock(&lock);
}
