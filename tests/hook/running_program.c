/* Rounds of running_launches_look over one launch that runs since 1 s. Standard input: lines "ROUND INTERRUPTS ENDING",
 * the time in ms. argv[1]: --watchdog in ms. Prints notes and lines of the log. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "event_log.h"
#include "kernel.h"
#include "run_notes.h"
#include "running_launches.h"
#include "settings.h"
#include "signals.h"
#include "simulated_fault.h"
#include "timers.h"
#include "watched_launches.h"

static struct kernel kernel;

size_t timers_running(struct timed_running *running, size_t most, uint64_t before)
{
    const struct timed_running launch = {&kernel, 7, UINT64_C(1000000000)};
    if (!most || launch.launched >= before)
        return 0;
    *running = launch;
    return 1;
}

void run_note(const char *word, const char *text)
{
    printf("note %s %s\n", word, text);
}

void event_log(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
}

bool watched_launch_find(uint64_t number, struct watched_launch *launch)
{
    (void)number, (void)launch;
    return false;
}

bool unwatched_launch_at(size_t place, struct unwatched_launch *launch)
{
    (void)place, (void)launch;
    return false;
}

void simulated_findings_log_running(const char *kernel, uint64_t launch)
{
    (void)kernel, (void)launch;
}

int signals_pending(void)
{
    return 0;
}

int main(int argc, char **argv)
{
    unsigned long long time, interrupts;
    int ending;
    struct run_end end = {0};
    settings.long_launch = 10000;
    settings.watchdog = argc > 1 ? (unsigned int)atoi(argv[1]) : 0;
    while (scanf("%llu %llu %d", &time, &interrupts, &ending) == 3) {
        run_end_interrupt(&end, interrupts, time * 1000000);
        end.ending = ending;
        running_launches_look(&end, time * 1000000);
    }
    return 0;
}
