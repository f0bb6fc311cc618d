#include "timing.h"

#include "graph_times.h"
#include "schedule.h"
#include "settings.h"
#include "streams.h"

/* The two events of a timed launch cost 2.5 us of host time in a loop that does nothing but launch, and up to 7 us in
 * training steps of PyTorch, whose code takes the caches meanwhile; reading them later costs another thread about 20 us.
 * So the longer a kernel takes, the more of its launches are timed. Of 10 000 launches of one shape that takes 100 us,
 * 850 are timed: enough for its mean to 1 %, where the standard deviation is a third of the mean. */
enum { ORIGINAL_DIVISOR = 8, PROBED_DIVISOR = 32, MOST_DIVISOR = 256, NS_PER_DIVISOR = 400 };

static const uint64_t SEED = 0x7469;

/* The last launch of this thread, which a programmatic dependent launch may overlap with. */
static _Thread_local struct shape_group *before __attribute__((tls_model("initial-exec")));

static bool is_programmatic(const struct launch *launch)
{
    for (unsigned int i = 0; launch->config && launch->config->attrs && i < launch->config->numAttrs; i++) {
        const CUlaunchAttribute *attribute = &launch->config->attrs[i];
        if (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
            (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION && attribute->value.programmatic))
            return true;
    }
    return false;
}

/* Keeps events away from programmatic launches: from this kernel's own, and from the end of what comes before it. */
static bool stands_alone(const struct launch *launch)
{
    const bool programmatic = is_programmatic(launch);
    if (programmatic && before)
        atomic_store_explicit(&before->timed.overlapped, true, memory_order_relaxed);
    before = launch->group;
    return !programmatic && !atomic_load_explicit(&launch->group->timed.overlapped, memory_order_relaxed);
}

static unsigned int divisor_of(struct timed_kind *kind, bool probed)
{
    if (probed)
        return PROBED_DIVISOR;
    const uint64_t wanted = atomic_load_explicit(&kind->typical, memory_order_relaxed) / NS_PER_DIVISOR;
    return wanted < ORIGINAL_DIVISOR ? ORIGINAL_DIVISOR : wanted > MOST_DIVISOR ? MOST_DIVISOR : (unsigned int)wanted;
}

static bool is_due(struct timed *timed, uint64_t seed, bool probed, uint64_t n, unsigned int divisor)
{
    struct timed_kind *kind = &timed->of[probed];
    const bool due = backoff_due(&kind->backoff, n, SEED + seed, divisor);
    if (probed)
        atomic_store_explicit(&timed->after_probed, true, memory_order_relaxed);
    else if (atomic_load_explicit(&timed->after_probed, memory_order_relaxed))
        return atomic_exchange_explicit(&timed->after_probed, false, memory_order_relaxed) || due;
    return due;
}

/* Without a pair to spare the launches that it would stand for belong to no one: the next one would otherwise count for
 * all that came while the device was behind, and it is always the same one of a loop. */
static struct timer *take(struct timed_kind *kind, uint64_t n, struct timed_launch *timed)
{
    const uint64_t counted = atomic_exchange_explicit(&kind->counted, n + 1, memory_order_relaxed);
    timed->weight = counted <= n ? n + 1 - counted : 1;
    return timers_take();
}

struct timer *timing_begin(const struct launch *launch, bool probed, struct timed_launch *timed)
{
    if (!settings.times)
        return NULL;
    struct shape_group *group = launch->group;
    struct timed_kind *kind = &group->timed.of[probed];
    const uint64_t n = atomic_fetch_add_explicit(&kind->launches, 1, memory_order_relaxed);
    const bool isolated = stands_alone(launch);
    const bool is_watched = settings.watchdog && !probed; /* it has no places: its events show whether it ends */
    const bool due = is_due(&group->timed, group->seed, probed, n, divisor_of(kind, probed));
    if (!(due || is_watched) || !isolated || streams_any_capture())
        return NULL;
    *timed = (struct timed_launch){.group = group, .number = launch->number};
    return take(kind, n, timed);
}

struct timer *timing_begin_replay(struct graph_times *times, bool probed, uint64_t number, struct timed_launch *timed)
{
    if (!settings.times)
        return NULL;
    struct timed_kind *kind = &times->timed.of[probed];
    const uint64_t n = atomic_fetch_add_explicit(&kind->launches, 1, memory_order_relaxed);
    before = NULL; /* a graph has no programmatic edge to what comes next */
    /* Replays of one graph differ less than launches of one shape, and each is a call that must not cost more. */
    if (!is_due(&times->timed, times->id, probed, n, probed ? PROBED_DIVISOR : ORIGINAL_DIVISOR) ||
        streams_any_capture())
        return NULL;
    *timed = (struct timed_launch){.graph = times, .number = number};
    return take(kind, n, timed);
}

void timing_reset(void)
{
    before = NULL;
    timers_reset();
}
