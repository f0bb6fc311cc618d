#include "replayed_probes.h"

#include <pthread.h>

#include "errors.h"
#include "event_log.h"
#include "prepare.h"
#include "probed_enqueue.h"
#include "reasons.h"
#include "replay.h"
#include "rotation.h"
#include "settings.h"
#include "streams.h"
#include "variants.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool any_thread, several_threads;
static pthread_t first_thread;

static void note_thread(void)
{
    several_threads = several_threads || (any_thread && !pthread_equal(first_thread, pthread_self()));
    if (!any_thread)
        first_thread = pthread_self();
    any_thread = true;
}

void replayed_probes_note_thread(void)
{
    pthread_mutex_lock(&mutex);
    note_thread();
    pthread_mutex_unlock(&mutex);
}

/* Moves those that no launch of this shape had to the front, without the first, whose turn it is. Returns how many. */
static size_t choose(struct kernel *kernel, const struct launch *launch, struct kernel_probe *probes[])
{
    const size_t n = rotation_order(kernel, launch, probes);
    size_t chosen = 0;
    for (size_t i = 1; i < n; i++)
        if (!rotation_has_served(probes[i], launch))
            probes[chosen++] = probes[i];
    return chosen;
}

/* A launch for PROBE. False if there must be no more. */
static bool launch_for(struct kernel_probe *probe, const struct launch *program, CUcontext context)
{
    struct launch launch = *program;
    struct launch_resources resources;
    CUresult result = CUDA_SUCCESS;
    launch.timer = NULL;
    if (launch_resources_take(&resources, &launch, probe, context))
        return true; /* of the probe's next turn the log says why */
    struct arguments *arguments = arguments_take();
    const struct reason *reason = probed_enqueue(&launch, &resources, arguments, &result);
    if (!reason)
        launch_resources_launched(&resources, &launch, result);
    arguments_give(arguments);
    if (!reason && result == CUDA_SUCCESS)
        rotation_served(probe, &launch);
    else if (!reason && !error_is_sticky(result))
        prepare_give_up(probe, &launch, reason_with(LAUNCH_FAILED, reason_error_name(result)));
    return !error_is_sticky(result);
}

/* The reason why LAUNCH must not run twice; NULL if it may. */
static const struct reason *obstacle_of(const struct launch *launch, const struct kernel_probe *probe)
{
    struct arguments *arguments = arguments_take();
    const struct reason *reason = several_threads ? reason(SEVERAL_THREADS) : NULL;
    if (!reason)
        reason = arguments ? arguments_originals(arguments, launch, probe->kernel) : reason(HOST_MEMORY);
    if (!reason)
        reason = replay_obstacle(launch, probe, arguments->pointers);
    arguments_give(arguments);
    return reason;
}

static const struct reason *replay(const struct launch *launch, struct kernel_probe *probes[], size_t n,
                                   CUcontext context)
{
    const struct reason *reason = NULL;
    const struct variant *variant = variants_get(probes[0], launch, context, false, &reason);
    if (!variant || (reason = obstacle_of(launch, probes[0])))
        return reason;
    struct snapshot *snapshot = snapshot_take(probes[0], variant, launch_stream(launch));
    if (!snapshot)
        return reason(NO_SNAPSHOT);
    for (size_t i = 0; i < n && launch_for(probes[i], launch, context); i++)
        snapshot_restore(snapshot, launch_stream(launch));
    snapshot_free(snapshot);
    return NULL;
}

void replayed_probes_launch(const struct launch *launch, struct kernel *kernel, CUcontext context)
{
    struct kernel_probe *probes[MOST_PROBES];
    pthread_mutex_lock(&mutex);
    const size_t n = choose(kernel, launch, probes);
    const int mode = capture_mode_relax();
    const struct reason *reason = n ? replay(launch, probes, n, context) : NULL;
    capture_mode_restore(mode);
    pthread_mutex_unlock(&mutex);
    if (reason)
        event_log("[probe] not-replayed kernel %u launch %llu reason %s\n", kernel->index,
                  (unsigned long long)launch->number, reason->written);
}

void replayed_probes_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    any_thread = several_threads = false;
}
