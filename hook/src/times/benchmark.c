#include "benchmark.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_buffer.h"
#include "errors.h"
#include "event_log.h"
#include "launch_log.h"
#include "prepare.h"
#include "probed_launch.h"
#include "real.h"
#include "reasons.h"
#include "replay.h"
#include "settings.h"
#include "shared_variables.h"
#include "stopwatch.h"
#include "streams.h"
#include "variants.h"

/* Pairs of runs: their median is unmoved by two outliers, such as the first run, which meets cold caches. */
enum { SAMPLES = 5 };

/* The times of a kernel with one geometry, without and with a probe; -1: not measured. */
struct timings {
    struct timings *next;
    const struct kernel *kernel;
    struct kernel_probe *probe; /* NULL: it is run unprobed */
    uint32_t grid[3], block[3], shared;
    unsigned n_original, n_probed;
    float waiting; /* an original's time whose counterpart is still to come */
    uint64_t waiting_launch;
};

struct sample {
    float prologue, probed, epilogue, original;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct timings *timings;
static bool announced;
static pthread_t first_thread;
static bool several_threads;

static struct timings *timings_of(const struct launch *launch, const struct kernel *kernel, struct kernel_probe *probe)
{
    for (struct timings *t = timings; t; t = t->next)
        if (t->kernel == kernel && t->probe == probe && t->shared == launch->shared &&
            !memcmp(t->grid, launch->grid, sizeof t->grid) && !memcmp(t->block, launch->block, sizeof t->block))
            return t;
    struct timings *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->kernel = kernel;
    t->probe = probe;
    memcpy(t->grid, launch->grid, sizeof t->grid);
    memcpy(t->block, launch->block, sizeof t->block);
    t->shared = launch->shared;
    t->waiting = -1;
    t->next = timings;
    return timings = t;
}

static const char *number(char text[32], float value)
{
    if (value < 0)
        return "-";
    snprintf(text, 32, "%.6f", (double)value);
    return text;
}

static void log_sample(const struct timings *t, uint64_t launch, const struct sample *s, CUresult result)
{
    const char *probe = t->probe ? t->probe->name : NULL;
    char prologue[32], probed[32], epilogue[32], original[32], impact[32];
    float ratio = s->probed > 0 && s->original > 0 ? s->probed / s->original : -1;
    event_log_often(
        "[benchmark] prologue %s kernel %s epilogue %s original %s impact %s %d kernel %u launch %llu%s%s\n",
        number(prologue, s->prologue), number(probed, s->probed), number(epilogue, s->epilogue),
        number(original, s->original), number(impact, ratio), result, t->kernel->index, (unsigned long long)launch,
        probe ? " probe " : "", probe ? probe : "");
}

/* One launch of the probed kernel with its times. */
static CUresult run_probed(const struct launch *launch, const struct kernel_probe *probe, const struct variant *variant,
                           struct arguments *arguments, const struct bench_buffer *buffer, struct sample *sample)
{
    CUstream stream = launch_stream(launch);
    sample->prologue = buffer->size ? stopwatch_clear(buffer->memory, buffer->size, stream) : 0;
    CUresult result = shared_copy_constants(probe, variant, stream);
    if (result == CUDA_SUCCESS)
        result = stopwatch_launch(launch, variant->function, arguments->pointers, &sample->probed);
    if (result == CUDA_SUCCESS)
        sample->epilogue = buffer->size ? stopwatch_copy_back(buffer->memory, buffer->size, stream) : 0;
    return result;
}

/* Everything a measurement of a probed kernel needs. */
struct bench {
    struct launch *launch;
    struct kernel_probe *probe;
    struct timings *timings;
    struct variant *variant;
    struct bench_buffer buffer;
    struct arguments *arguments;
};

/* Gives up probing if the probed kernel cannot be launched; an error of the context is the program's. */
static void note_failure(const struct bench *bench, CUresult result)
{
    if (!error_is_sticky(result))
        prepare_give_up(bench->probe, bench->launch, reason_with(LAUNCH_FAILED, reason_error_name(result)));
}

/* Memory and arguments for a probed launch. Returns why there are none, or NULL. */
static const struct reason *equip(struct bench *bench)
{
    bench_buffer_free(&bench->buffer);
    const struct reason *reason = bench_buffer_make(&bench->buffer, bench->launch, bench->probe, bench->variant);
    return reason ? reason
                  : arguments_fill(bench->arguments, bench->launch, bench->probe, bench->variant, bench->buffer.memory);
}

/* The probed launch whose records may be saved. It is not timed: a dynamic map may have to grow, and the launch to be
 * repeated, before it keeps all of them. REASON says why that cannot be. */
static CUresult record(struct bench *bench, const struct snapshot *snapshot, const struct reason **reason)
{
    CUstream stream = launch_stream(bench->launch);
    struct sample sample;
    CUresult result =
        run_probed(bench->launch, bench->probe, bench->variant, bench->arguments, &bench->buffer, &sample);
    snapshot_restore(snapshot, stream);
    if (result == CUDA_SUCCESS &&
        bench_buffer_overflowed(&bench->buffer, bench->launch, bench->probe, bench->variant)) {
        if ((*reason = equip(bench)))
            return CUDA_SUCCESS;
        result = run_probed(bench->launch, bench->probe, bench->variant, bench->arguments, &bench->buffer, &sample);
        snapshot_restore(snapshot, stream);
    }
    if (result == CUDA_SUCCESS && settings.save_results)
        bench_buffer_save(&bench->buffer, bench->launch, bench->probe);
    return result;
}

/* Original and probed alternately from the same memory; the launch that stays is the original's. */
static CUresult replay(struct bench *bench, const struct snapshot *snapshot)
{
    CUstream stream = launch_stream(bench->launch);
    const struct reason *reason = NULL;
    CUresult result = record(bench, snapshot, &reason);
    if (reason)
        return launch_pass(bench->launch, reason);
    for (int i = 0; i < SAMPLES && result == CUDA_SUCCESS; i++) {
        struct sample sample = {-1, -1, -1, -1};
        result = stopwatch_launch(bench->launch, bench->launch->function, NULL, &sample.original);
        if (result != CUDA_SUCCESS)
            return result;
        snapshot_restore(snapshot, stream);
        result = run_probed(bench->launch, bench->probe, bench->variant, bench->arguments, &bench->buffer, &sample);
        log_sample(bench->timings, bench->launch->number, &sample, result);
        snapshot_restore(snapshot, stream);
    }
    if (result == CUDA_SUCCESS)
        bench->timings->n_original = bench->timings->n_probed = SAMPLES;
    else
        note_failure(bench, result);
    if (error_is_sticky(result))
        return result;
    return probed_log_launch(bench->launch, bench->probe, bench->arguments,
                             launch_enqueue(bench->launch, bench->launch->function, NULL));
}

static CUresult time_original(const struct launch *launch, struct timings *t)
{
    float milliseconds;
    CUresult result = stopwatch_launch(launch, launch->function, NULL, &milliseconds);
    t->n_original++;
    if (t->probe) {
        t->waiting = milliseconds;
        t->waiting_launch = launch->number;
    } else {
        struct sample sample = {-1, -1, -1, milliseconds};
        log_sample(t, launch->number, &sample, result);
    }
    return result;
}

static CUresult time_probed(struct bench *bench)
{
    struct timings *t = bench->timings;
    struct sample sample = {-1, -1, -1, t->waiting};
    CUresult result =
        run_probed(bench->launch, bench->probe, bench->variant, bench->arguments, &bench->buffer, &sample);
    t->n_probed++;
    t->waiting = -1;
    log_sample(t, bench->launch->number, &sample, result);
    probed_log_launch(bench->launch, bench->probe, bench->arguments, result);
    if (result == CUDA_SUCCESS && settings.save_results)
        bench_buffer_save(&bench->buffer, bench->launch, bench->probe);
    if (result == CUDA_SUCCESS || error_is_sticky(result))
        return result;
    CUresult original = launch_pass(bench->launch, reason_with(LAUNCH_FAILED, reason_error_name(result)));
    if (original == CUDA_SUCCESS)
        note_failure(bench, result);
    return original;
}

/* The program's launches are alternately the original's and the probed kernel's. */
static CUresult alternate(struct bench *bench, const struct reason *obstacle)
{
    struct timings *t = bench->timings;
    if (t->n_original == 0)
        event_log("[benchmark] alternate kernel %u reason %s\n", bench->probe->kernel->index, obstacle->written);
    if (t->n_original > t->n_probed)
        return time_probed(bench);
    CUresult result = time_original(bench->launch, t);
    launch_log_passed(bench->launch, reason(TIMED_AS_ORIGINAL), result);
    return result;
}

static CUresult measure(struct bench *bench)
{
    const struct reason *obstacle = several_threads ? reason(SEVERAL_THREADS) : NULL;
    struct snapshot *snapshot = NULL;
    if (!obstacle && bench->timings->n_original)
        obstacle = reason(BY_TURNS);
    if (!obstacle)
        obstacle = replay_obstacle(bench->launch, bench->probe, bench->arguments->pointers);
    if (!obstacle && !(snapshot = snapshot_take(bench->probe, bench->variant, launch_stream(bench->launch))))
        obstacle = reason(NO_SNAPSHOT);
    if (obstacle)
        return alternate(bench, obstacle);
    CUresult result = replay(bench, snapshot);
    snapshot_free(snapshot);
    return result;
}

static CUresult measure_probed(struct launch *launch, struct timings *t)
{
    struct kernel_probe *probe = t->probe;
    struct bench bench = {.launch = launch, .probe = probe, .timings = t};
    CUcontext context = NULL;
    const struct reason *reason = reason(NO_CONTEXT);
    if (REAL_OR_NOT_FOUND(cuCtxGetCurrent, &context) == CUDA_SUCCESS && context)
        bench.variant = variants_get(probe, launch, context, false, &reason);
    if (bench.variant)
        reason = (bench.arguments = arguments_take()) ? equip(&bench) : reason(HOST_MEMORY);
    CUresult result = reason ? launch_pass(launch, reason) : measure(&bench);
    bench_buffer_free(&bench.buffer);
    arguments_give(bench.arguments);
    return result;
}

static CUresult measure_passed(const struct launch *launch, struct kernel *kernel, struct timings *t)
{
    CUresult result = time_original(launch, t);
    launch_log_passed(launch, atomic_load(&kernel->reason), result);
    return result;
}

static bool is_complete(const struct timings *t)
{
    return t->n_original >= SAMPLES && (!t->probe || t->n_probed >= SAMPLES);
}

/* The times that LAUNCH adds to: of an original that waits for its counterpart, else of the probe with fewest. NULL if
 * all are complete, or without memory; *REASON says which. */
static struct timings *choose(const struct launch *launch, struct kernel *kernel, const struct reason **reason)
{
    struct timings *chosen = NULL;
    *reason = reason(MEASURED);
    for (size_t i = 0; i < kernel->n_probes; i++) {
        if (atomic_load(&kernel->probes[i].reason))
            continue;
        struct timings *t = timings_of(launch, kernel, &kernel->probes[i]);
        if (!t)
            *reason = reason(HOST_MEMORY);
        else if (t->n_original > t->n_probed)
            return t;
        else if (!is_complete(t) && (!chosen || t->n_original < chosen->n_original))
            chosen = t;
    }
    return chosen;
}

static CUresult benchmark_probed(struct launch *launch, struct kernel *kernel)
{
    const struct reason *reason;
    struct timings *t = choose(launch, kernel, &reason);
    return t ? measure_probed(launch, t) : launch_pass(launch, reason);
}

static CUresult benchmark_passed(struct launch *launch, struct kernel *kernel)
{
    struct timings *t = timings_of(launch, kernel, NULL);
    if (t && !is_complete(t))
        return measure_passed(launch, kernel, t);
    return launch_pass(launch, t ? atomic_load(&kernel->reason) : reason(HOST_MEMORY));
}

static void announce(void)
{
    if (!announced) {
        announced = true;
        first_thread = pthread_self();
        event_log("[benchmark] ENABLED L2 Flush Size %zu\n", stopwatch_flush_size());
    }
    if (!pthread_equal(first_thread, pthread_self()))
        several_threads = true;
}

CUresult benchmark_launch(struct launch *launch, struct kernel *kernel)
{
    pthread_mutex_lock(&mutex);
    announce();
    bool probed = atomic_load(&kernel->status) == KERNEL_PROBED;
    int mode = capture_mode_relax();
    CUresult result = probed ? benchmark_probed(launch, kernel) : benchmark_passed(launch, kernel);
    capture_mode_restore(mode);
    pthread_mutex_unlock(&mutex);
    return result;
}

void benchmark_end(void)
{
    if (pthread_mutex_trylock(&mutex) != 0)
        return; /* a measurement hangs; its thread still owns the list */
    for (const struct timings *t = timings; t; t = t->next)
        if (t->waiting >= 0) {
            struct sample sample = {-1, -1, -1, t->waiting};
            log_sample(t, t->waiting_launch, &sample, CUDA_SUCCESS);
        }
    pthread_mutex_unlock(&mutex);
}

void benchmark_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    timings = NULL;
    announced = several_threads = false;
}
