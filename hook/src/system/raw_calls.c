#include "raw_calls.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "signal_calls.h"
#include "system_call.h"

static struct raw_call_ends ends;

static long replace(long number, long a, long b, long c, long d, long e, long f)
{
    ends.leave();
    const long result = system_call_next(number, a, b, c, d, e, f);
    const int error = errno;
    ends.stay();
    errno = error;
    return result;
}

static long call(long number, long a, long b, long c, long d, long e, long f)
{
    switch (number) {
    case SYS_execve:
    case SYS_execveat:
        return replace(number, a, b, c, d, e, f);
    case SYS_exit_group:
        ends.end((int)a);
        break;
    case SYS_exit:
        ends.end_thread((int)a);
        break;
    case SYS_kill:
    case SYS_rt_sigqueueinfo:
    case SYS_pidfd_send_signal: /* its file descriptor does not say whose process it is */
        signal_calls_expect(number == SYS_pidfd_send_signal ? 0 : (int)a, (int)b);
        break;
    case SYS_tkill: /* likewise */
        signal_calls_expect(0, (int)b);
        break;
    case SYS_tgkill:
    case SYS_rt_tgsigqueueinfo:
        signal_calls_expect((int)a, (int)c);
        break;
    }
    return system_call_next(number, a, b, c, d, e, f);
}

extern long exported(long number, ...) __asm__("syscall"); /* in system_call_entry.S */

void raw_calls_watch(const struct raw_call_ends *of_process, struct reference *reference)
{
    static const short numbers[] = {
        SYS_execve, SYS_execveat,        SYS_exit_group,        SYS_exit,  SYS_kill,
        SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_tkill, SYS_pidfd_send_signal,
    };
    void *ours = (void *)(uintptr_t)exported;
    ends = *of_process;
    *reference = (struct reference){"syscall", ours};
    system_call_watch(numbers, sizeof numbers / sizeof *numbers, call,
                      (system_call_function *)(uintptr_t)references_next("syscall", ours));
}
