#include "reasons.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real.h"

struct reason {
    struct reason *next;
    char text[];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct reason *reasons;

static struct reason *keep(const char *text)
{
    size_t size = strlen(text) + 1;
    struct reason *reason = malloc(sizeof *reason + size);
    if (!reason)
        return NULL;
    memcpy(reason->text, text, size);
    reason->next = reasons;
    return reasons = reason;
}

const char *reason_print(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *c = text; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    pthread_mutex_lock(&mutex);
    struct reason *reason = reasons;
    while (reason && strcmp(reason->text, text) != 0)
        reason = reason->next;
    if (!reason)
        reason = keep(text);
    pthread_mutex_unlock(&mutex);
    return reason ? reason->text : "out of host memory";
}

const char *reason_error_name(CUresult result)
{
    const char *name = NULL;
    if (REAL_OR_NOT_FOUND(cuGetErrorName, result, &name) == CUDA_SUCCESS && name)
        return name;
    return reason_print("error %d", result);
}
