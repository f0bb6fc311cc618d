#include "unloading.h"

#include <pthread.h>

#include "background.h"
#include "registry.h"
#include "variants.h"

/* A thread of the program may be using a record that another one unloads under it. Records are freed once as many
 * others came behind them, so that such a program meets nothing worse than without us. */
enum { RETIRED = 64 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct code *retired[RETIRED];
static unsigned n_retired;

struct code *unloading_begin(void *handle)
{
    struct code *code = registry_find_code(handle);
    if (code) {
        registry_code_leaves(code, true);
        background_leave(code);
    }
    return code;
}

/* Frees the one that leaves the queue. */
static void retire(struct code *code)
{
    pthread_mutex_lock(&mutex);
    struct code **place = &retired[n_retired++ % RETIRED], *oldest = *place;
    *place = code;
    pthread_mutex_unlock(&mutex);
    if (!oldest)
        return;
    variants_free(oldest);
    registry_free_code(oldest);
}

void unloading_end(struct code *code, bool is_unloaded)
{
    if (!code)
        return;
    if (!is_unloaded) {
        registry_code_leaves(code, false);
        return;
    }
    registry_forget_code(code);
    variants_unload(code);
    retire(code);
}

void unloading_unseen(void *handle)
{
    struct code *code = registry_find_code(handle);
    if (code && registry_code_is_leaving(code))
        registry_forget_code(code); /* the thread that unloads it does the rest */
    else
        unloading_end(unloading_begin(handle), true);
}

void unloading_settle_context(CUcontext context, bool gone)
{
    struct code *code = registry_settle_context(context, gone);
    while (code) {
        struct code *next = code->older;
        retire(code);
        code = next;
    }
}

void unloading_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
}
