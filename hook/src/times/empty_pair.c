#define _GNU_SOURCE
#include "empty_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "clock.h"
#include "device.h"
#include "event_log.h"
#include "real.h"
#include "settings.h"
#include "streams.h"

enum { NOTHING_NS = 600 }; /* its time by CUPTI on an H200, where longer kernels differ from their pairs as it does */

/* An H100 and an H200 show 1.9 to 2.4 us; pairs that waited for kernels of the program show more, by any time. So they
 * are recorded in four rounds, and in more while all show too much. If even those do, it is taken to be as usual. */
enum { PLAUSIBLE_NS = 6000, USUAL_NS = 2100, LEAST_ROUNDS = 4, MOST_ROUNDS = 8 };

/* Longest wait of the first launch in a context; the second one where launches are patient. */
enum { FIRST_LAUNCH_NS = 3000000, PATIENT_NS = 1000000000, POLL_NS = 20000 };

enum { WORK_BYTES = 1 << 20, WORK_TIMES = 4 }; /* of pinned host memory, which a device is slow to fill */

static bool make(CUevent *event)
{
    if (!*event && REAL_OR_NOT_FOUND(cuEventCreate, event, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
        *event = NULL;
    return *event;
}

bool event_pair_make(struct event_pair *pair)
{
    if (pair->start && pair->end)
        return true;
    int mode = capture_mode_relax();
    const bool made = make(&pair->start) && make(&pair->end);
    capture_mode_restore(mode);
    return made;
}

bool event_pair_elapsed(const struct event_pair *pair, float *milliseconds)
{
    return REAL_OR_NOT_FOUND(cuEventElapsedTime, milliseconds, pair->start, pair->end) == CUDA_SUCCESS &&
           *milliseconds >= 0;
}

/* The memory stays until the program lacks some: freeing it would wait for the device. */
static void queue_work(struct empty_pair *empty)
{
    if (!empty->work && REAL_OR_NOT_FOUND(cuMemAllocHost_v2, &empty->work, WORK_BYTES) != CUDA_SUCCESS) {
        empty->work = NULL;
        return;
    }
    for (int i = 0; i < WORK_TIMES; i++)
        REAL_OR_NOT_FOUND(cuMemsetD8Async, (CUdeviceptr)(uintptr_t)empty->work, 0, WORK_BYTES, empty->stream);
}

/* The file of the kernel's machine code, that runs on all devices of one major compute capability; 7.5 begins anew. */
static char *find_file(void)
{
    char *path;
    CUdevice device;
    if (!settings.empty_kernels || REAL_OR_NOT_FOUND(cuCtxGetDevice, &device) != CUDA_SUCCESS)
        return NULL;
    const unsigned capability = device_capability(device), base = capability < 80 ? 75 : capability / 10 * 10;
    return asprintf(&path, "%s/sm_%u.cubin", settings.empty_kernels, base) < 0 ? NULL : path;
}

/* NULL where there is no such file. It is not PTX: a process that ends while its driver compiles is aborted by it. */
static CUfunction load_nothing(void)
{
    char *path = find_file();
    CUmodule module;
    CUfunction function;
    const bool loaded = path && REAL_OR_NOT_FOUND(cuModuleLoad, &module, path) == CUDA_SUCCESS &&
                        REAL_OR_NOT_FOUND(cuModuleGetFunction, &function, module, "nothing") == CUDA_SUCCESS;
    free(path);
    return loaded ? function : NULL;
}

static bool launch_nothing(CUfunction nothing, CUstream stream)
{
    return !nothing ||
           REAL_OR_NOT_FOUND(cuLaunchKernel, nothing, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL) == CUDA_SUCCESS;
}

static bool queue_pairs(struct empty_pair *empty)
{
    for (int i = 0; i < EMPTY_PAIRS; i++)
        if (!event_pair_make(&empty->pairs[i]))
            return false;
    queue_work(empty);
    for (int i = 0; i < EMPTY_PAIRS; i++)
        if (REAL_OR_NOT_FOUND(cuEventRecord, empty->pairs[i].start, empty->stream) != CUDA_SUCCESS ||
            !launch_nothing(empty->nothing, empty->stream) ||
            REAL_OR_NOT_FOUND(cuEventRecord, empty->pairs[i].end, empty->stream) != CUDA_SUCCESS)
            return false;
    return true;
}

/* The least of the pairs: a wait for the host, or for kernels of the program, only makes one longer. */
static double measured(const struct empty_pair *empty)
{
    double least = 0;
    for (int i = 0; i < EMPTY_PAIRS; i++) {
        float milliseconds;
        if (!event_pair_elapsed(&empty->pairs[i], &milliseconds))
            return 0;
        if (i == 0 || milliseconds * 1e6 < least)
            least = milliseconds * 1e6;
    }
    if (!empty->nothing)
        return least;
    return least > NOTHING_NS ? least - NOTHING_NS : 0;
}

static void ask(struct empty_pair *empty)
{
    empty->nothing = load_nothing();
    const bool made = REAL_OR_NOT_FOUND(cuStreamCreate, &empty->stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS;
    if (made && !launch_nothing(empty->nothing, empty->stream)) /* the first launch may set things up */
        empty->nothing = NULL;
    empty->state = made && queue_pairs(empty) ? EMPTY_ASKED : EMPTY_KNOWN;
}

static bool is_another_round_due(const struct empty_pair *empty)
{
    return empty->rounds < LEAST_ROUNDS || (empty->nanoseconds > PLAUSIBLE_NS && empty->rounds < MOST_ROUNDS);
}

/* Takes what a round of pairs shows. False if they are queued again. */
static bool take(struct empty_pair *empty, CUresult done)
{
    const double least = done == CUDA_SUCCESS ? measured(empty) : 0;
    if (!empty->rounds++ || least < empty->nanoseconds)
        empty->nanoseconds = least;
    if (done == CUDA_SUCCESS && is_another_round_due(empty) && queue_pairs(empty))
        return false;
    const bool is_assumed = empty->nanoseconds > PLAUSIBLE_NS;
    if (is_assumed)
        empty->nanoseconds = USUAL_NS;
    empty->state = EMPTY_KNOWN;
    event_log_often("[time] empty %.0f%s%s\n", empty->nanoseconds, empty->nothing ? "" : " without-kernel",
                    is_assumed ? " assumed" : "");
    return true;
}

bool empty_pair_known(struct empty_pair *empty)
{
    if (empty->state == EMPTY_NOT_ASKED)
        ask(empty);
    if (empty->state == EMPTY_KNOWN)
        return true;
    const CUresult done = REAL_OR_NOT_FOUND(cuEventQuery, empty->pairs[EMPTY_PAIRS - 1].end);
    return done != CUDA_ERROR_NOT_READY && take(empty, done);
}

void empty_pair_measure(struct empty_pair *empty)
{
    const uint64_t end = clock_now() + (settings.patient ? PATIENT_NS : FIRST_LAUNCH_NS);
    int mode = capture_mode_relax();
    while (!empty_pair_known(empty) && clock_now() < end)
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    capture_mode_restore(mode);
}

void empty_pair_free(struct empty_pair *empty)
{
    if (empty->state == EMPTY_KNOWN && empty->work)
        REAL_OR_NOT_FOUND(cuMemFreeHost, empty->work);
    if (empty->state == EMPTY_KNOWN)
        empty->work = NULL;
}
