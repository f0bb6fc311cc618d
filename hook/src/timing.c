#include "timing.h"

#include "schedule.h"
#include "settings.h"
#include "streams.h"

/* A launch without the probe costs two events in a few microseconds; one with it costs more than that anyway. */
enum { ORIGINAL_DIVISOR = 8, PROBED_DIVISOR = 32 };

static const uint64_t SEED = 0x7469;

/* What this thread launched last, which a programmatic dependent launch may overlap with. */
static _Thread_local struct key *before __attribute__((tls_model("initial-exec")));

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
    before = launch->key;
    return !programmatic && !atomic_load_explicit(&launch->key->timed.overlapped, memory_order_relaxed);
}

static bool is_due(struct timed *timed, uint64_t seed, bool probed, uint64_t n)
{
    const bool due = pace_due(&timed->of[probed].pace, n, SEED + seed, probed ? PROBED_DIVISOR : ORIGINAL_DIVISOR);
    if (probed)
        atomic_store_explicit(&timed->beside, true, memory_order_relaxed);
    else if (atomic_load_explicit(&timed->beside, memory_order_relaxed))
        return atomic_exchange_explicit(&timed->beside, false, memory_order_relaxed) || due;
    return due;
}

struct timer *timing_begin(const struct launch *launch, bool probed, struct timed_launch *timed)
{
    if (!settings.times)
        return NULL;
    struct key *key = launch->key;
    struct timed_kind *kind = &key->timed.of[probed];
    const uint64_t n = atomic_fetch_add_explicit(&kind->launches, 1, memory_order_relaxed);
    const bool alone = stands_alone(launch);
    if (!is_due(&key->timed, key->seed, probed, n) || !alone || streams_any_capture())
        return NULL;
    struct timer *timer = timers_take();
    if (timer) {
        const uint64_t counted = atomic_exchange_explicit(&kind->counted, n + 1, memory_order_relaxed);
        *timed = (struct timed_launch){key, launch->number, counted <= n ? n + 1 - counted : 1};
    }
    return timer;
}

void timing_reset(void)
{
    before = NULL;
    timers_reset();
}
