#include "running_launches.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "event_log.h"
#include "kernel.h"
#include "reasons.h"
#include "run_notes.h"
#include "settings.h"
#include "signals.h"
#include "simulated_fault.h"
#include "timers.h"
#include "watched_launches.h"

enum { OLD_MS = 250 }; /* how long a launch has run that is reported before the limit */
enum { MOST_RUNNING = 64, NOTE_SIZE = 512 };
#define NS_PER_MS UINT64_C(1000000)

struct running {
    uint64_t number, since, interrupts; /* the last one in which it has been noted */
    const struct kernel *kernel;
    const struct reason *reason;
    bool logged, noted, still; /* still: it runs in this round */
};

static struct running running[MOST_RUNNING];
static size_t n_running;
static uint64_t last_round; /* its time */

static void meet(const struct running *launch)
{
    for (size_t i = 0; i < n_running; i++)
        if (running[i].number == launch->number) {
            running[i].still = true;
            return;
        }
    if (n_running < MOST_RUNNING)
        running[n_running++] = *launch;
}

/* Those whose driver call has not returned, where it returns at the kernel's end. Elsewhere it may wait for others. */
static void meet_called(void)
{
    struct unwatched_launch launch;
    if (!settings.launches_block)
        return;
    for (size_t place = 0; place < UNWATCHED_LAUNCHES; place++)
        if (unwatched_launch_at(place, &launch) && launch.kernel)
            meet(&(struct running){.number = launch.number,
                                   .since = launch.since,
                                   .kernel = launch.kernel,
                                   .reason = launch.reason,
                                   .still = true});
}

/* A launch that was old enough to be met in the last round, and was not, waited for others then. */
static uint64_t began_at(uint64_t launched)
{
    return launched + OLD_MS * NS_PER_MS > last_round ? launched : last_round;
}

/* Those on a device, between their events. Others have places. */
static void meet_timed(uint64_t now)
{
    struct timed_running timed[MOST_RUNNING];
    struct watched_launch watched;
    const size_t n = timers_running(timed, MOST_RUNNING, now - OLD_MS * NS_PER_MS);
    for (size_t i = 0; i < n; i++)
        if (!watched_launch_find(timed[i].number, &watched))
            meet(&(struct running){.number = timed[i].number,
                                   .since = began_at(timed[i].launched),
                                   .kernel = timed[i].kernel,
                                   .reason = atomic_load(&timed[i].kernel->reason),
                                   .still = true});
}

static void forget_ended(void)
{
    size_t still = 0;
    for (size_t i = 0; i < n_running; i++)
        if (running[i].still)
            running[still++] = running[i];
    n_running = still;
}

void run_end_interrupt(struct run_end *end, uint64_t interrupts, uint64_t time)
{
    for (; end->interrupts < interrupts; end->interrupts++) {
        memmove(end->times + 1, end->times, sizeof end->times - sizeof *end->times);
        end->times[0] = time;
    }
}

uint64_t run_end_requests(const struct run_end *end, uint64_t since)
{
    uint64_t n = 0;
    while (n < INTERRUPTS_KEPT && n < end->interrupts && end->times[n] >= since)
        n++;
    return n;
}

static bool is_over_limit(const struct running *launch, uint64_t at)
{
    const uint64_t limit = settings.watchdog ? settings.watchdog : settings.long_launch;
    return at >= launch->since && at - launch->since >= limit * NS_PER_MS;
}

/* Without a watchdog, a program that handles interrupts is not ended while its launch may only be a long one. */
static bool is_interrupted(const struct running *launch, const struct run_end *end, uint64_t now)
{
    if (!settings.watchdog)
        return is_over_limit(launch, end->times[0]);
    return run_end_requests(end, launch->since) && now - launch->since >= OLD_MS * NS_PER_MS;
}

/* Without a watchdog, all those within the limit are one: the next one is the second, which a program can handle. */
static uint64_t requests_of(const struct running *launch, const struct run_end *end)
{
    const uint64_t all = run_end_requests(end, launch->since);
    const uint64_t late =
        settings.watchdog ? all : run_end_requests(end, launch->since + settings.long_launch * NS_PER_MS);
    return late + (all > late);
}

static void report(struct running *launch, const struct run_end *end, uint64_t now)
{
    const bool is_left = end->ending && now - launch->since >= OLD_MS * NS_PER_MS;
    const struct reason *reason = settings.watchdog && launch->reason ? launch->reason : reason(NOT_WATCHED);
    if (launch->logged || !(is_over_limit(launch, now) || is_left || is_interrupted(launch, end, now)))
        return;
    launch->logged = true;
    event_log("[stuck] launch %llu kernel %u seconds %.1f warps 0 left-out 0 reason %s\n",
              (unsigned long long)launch->number, launch->kernel->index, (double)(now - launch->since) / 1e9,
              reason->written);
    simulated_findings_log_running(launch->kernel->name, launch->number);
}

/* The launcher ends the process at the limit of the watchdog, or at the second interrupt of the launch. */
static void note(struct running *launch, const struct run_end *end, uint64_t now)
{
    char text[NOTE_SIZE];
    if (settings.watchdog && !launch->noted && is_over_limit(launch, now)) {
        launch->noted = true;
        snprintf(text, sizeof text, "%llu %s", (unsigned long long)launch->number,
                 launch->reason ? launch->reason->written : reason(NOT_WATCHED)->written);
        run_note("unwatched", text);
    }
    if (is_interrupted(launch, end, now) && launch->interrupts != end->interrupts && !signals_pending()) {
        launch->interrupts = end->interrupts;
        snprintf(text, sizeof text, "%llu %llu", (unsigned long long)requests_of(launch, end),
                 (unsigned long long)launch->number);
        run_note("interrupted", text);
    }
}

void running_launches_look(const struct run_end *end, uint64_t now)
{
    for (size_t i = 0; i < n_running; i++)
        running[i].still = false;
    meet_called();
    meet_timed(now);
    forget_ended();
    for (size_t i = 0; i < n_running; i++) {
        if (now < running[i].since)
            continue;
        report(&running[i], end, now);
        note(&running[i], end, now);
    }
    last_round = now;
}

void running_launches_reset(void)
{
    n_running = 0;
    last_round = 0;
}
