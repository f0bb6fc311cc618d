#include "event_log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "control.h"
#include "hook_state.h"
#include "launch_log.h"
#include "log_file.h"
#include "signals.h"

enum { DROPPED_BYTES = 1024 };

/* Lines that the log had no room for, by tag. */
static struct {
    const char *tag;
    atomic_uint_fast64_t lines;
} dropped[] = {{.tag = "other"}, {.tag = "mod"},    {.tag = "bin"},    {.tag = "mem"},
               {.tag = "nvtx"},  {.tag = "graph"},  {.tag = "node"},   {.tag = "time"},
               {.tag = "exec"},  {.tag = "kernel"}, {.tag = "budget"}, {.tag = "benchmark"}};

void event_log(const char *format, ...)
{
    if (!hook_active())
        return;
    va_list arguments;
    va_start(arguments, format);
    signals_hold();
    if (log_file_lock_in_time()) {
        launch_log_drain();
        log_file_append_list(format, arguments);
        log_file_write();
        log_file_unlock();
    } else {
        log_file_write_past(format, arguments);
    }
    signals_release();
    va_end(arguments);
}

void event_log_launches(void)
{
    if (!hook_active())
        return;
    signals_hold();
    if (log_file_lock_in_time()) {
        launch_log_drain();
        log_file_write();
        log_file_unlock();
    }
    signals_release();
}

static atomic_uint_fast64_t *dropped_of(const char *format)
{
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        if (strncmp(format + 1, dropped[i].tag, strlen(dropped[i].tag)) == 0)
            return &dropped[i].lines;
    return &dropped[0].lines;
}

void event_log_drop(const char *format, ...)
{
    if (!hook_active())
        return;
    atomic_fetch_add(&control->log_bytes.refused, 1);
    atomic_fetch_add(dropped_of(format), 1);
}

void event_log_dropped(void)
{
    char text[DROPPED_BYTES];
    size_t used = 0;
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        if (atomic_load(&dropped[i].lines))
            used += (size_t)snprintf(text + used, sizeof text - used, " %s %llu", dropped[i].tag,
                                     (unsigned long long)atomic_load(&dropped[i].lines));
    if (used)
        event_log("[budget] dropped lines%s: allow more with --max-log-bytes\n", text);
}

void event_log_reset(void)
{
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        atomic_store(&dropped[i].lines, 0);
}
