#include "context_holds.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "real.h"
#include "signals.h"

enum { DEVICES = 128 };

struct primary {
    pthread_mutex_t mutex;
    _Atomic(CUcontext) context; /* NULL: not known to be there */
    unsigned retained;          /* through us; guarded by the mutex */
};

static struct primary primaries[DEVICES] = {[0 ... DEVICES - 1] = {.mutex = PTHREAD_MUTEX_INITIALIZER}};

struct attached {
    struct attached *next;
    CUcontext context;
    unsigned times; /* besides its creation */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct attached *all_attached;

/* Devices beyond the last one share its entry: the driver refuses their numbers. */
static struct primary *primary_of(CUdevice device)
{
    return &primaries[device >= 0 && device < DEVICES ? device : DEVICES - 1];
}

void primary_context_lock(CUdevice device)
{
    signals_lock(&primary_of(device)->mutex);
}

void primary_context_unlock(CUdevice device)
{
    signals_unlock(&primary_of(device)->mutex);
}

void primary_context_retained(CUdevice device, CUcontext context)
{
    struct primary *primary = primary_of(device);
    atomic_store(&primary->context, context);
    primary->retained++;
}

void primary_context_released(CUdevice device)
{
    struct primary *primary = primary_of(device);
    if (primary->retained)
        primary->retained--;
}

bool primary_context_is_active(CUdevice device)
{
    unsigned int flags;
    int active = 0;
    return REAL_OR_NOT_FOUND(cuDevicePrimaryCtxGetState, device, &flags, &active) == CUDA_SUCCESS && active;
}

CUcontext primary_context_of(CUdevice device)
{
    struct primary *primary = primary_of(device);
    CUcontext context = atomic_load(&primary->context);
    if (context || !primary_context_is_active(device))
        return context;
    if (REAL_OR_NOT_FOUND(cuDevicePrimaryCtxRetain, &context, device) != CUDA_SUCCESS)
        return NULL;
    REAL_OR_NOT_FOUND(cuDevicePrimaryCtxRelease_v2, device);
    atomic_store(&primary->context, context);
    return context;
}

bool primary_context_is_held_once(CUdevice device)
{
    return primary_of(device)->retained <= 1;
}

bool context_is_primary(CUcontext context)
{
    for (size_t i = 0; context && i < DEVICES; i++)
        if (atomic_load(&primaries[i].context) == context)
            return true;
    return false;
}

static struct attached **find(CUcontext context)
{
    struct attached **at = &all_attached;
    while (*at && (*at)->context != context)
        at = &(*at)->next;
    return at;
}

void context_attached(CUcontext context)
{
    pthread_mutex_lock(&mutex);
    struct attached *attached = *find(context);
    if (!attached && (attached = calloc(1, sizeof *attached))) {
        attached->context = context;
        attached->next = all_attached;
        all_attached = attached;
    }
    if (attached)
        attached->times++;
    pthread_mutex_unlock(&mutex);
}

bool context_stays_attached(CUcontext context)
{
    pthread_mutex_lock(&mutex);
    struct attached *attached = *find(context);
    const bool stays = attached && attached->times;
    if (stays)
        attached->times--;
    pthread_mutex_unlock(&mutex);
    return stays;
}

static void forget_attached(CUcontext context)
{
    pthread_mutex_lock(&mutex);
    struct attached **at = find(context), *attached = *at;
    if (attached)
        *at = attached->next;
    free(attached);
    pthread_mutex_unlock(&mutex);
}

void context_holds_forget(CUcontext context)
{
    forget_attached(context);
    for (size_t i = 0; i < DEVICES; i++) {
        CUcontext gone = context;
        if (atomic_compare_exchange_strong(&primaries[i].context, &gone, NULL))
            primaries[i].retained = 0;
    }
}

void context_holds_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    all_attached = NULL;
    for (size_t i = 0; i < DEVICES; i++) {
        pthread_mutex_init(&primaries[i].mutex, NULL);
        atomic_store(&primaries[i].context, NULL);
        primaries[i].retained = 0;
    }
}
