#include "event_log.h"

#include <stdarg.h>

#include "control.h"
#include "hook_state.h"
#include "launch_log.h"
#include "log_file.h"
#include "signals.h"

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

bool event_log_has_room(void)
{
    if (control_log_is_open())
        return true;
    if (hook_active())
        atomic_fetch_add(&control->log_bytes.refused, 1);
    return false;
}
