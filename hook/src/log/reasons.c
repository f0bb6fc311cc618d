#include "reasons.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real.h"

enum { TEXT_SIZE = 512, WRITTEN_SIZE = TEXT_SIZE + 64 };

#define BEFORE_CODE " code "

const struct reason reasons_plain[REASON_CODES] = {
#define REASON(name, code, parameters, sentence, advice) {REASON_##name, sentence BEFORE_CODE code},
#include "../../../tui_probe/reasons/reasons.def"
#undef REASON
};

static const struct {
    const char *code, *sentence;
} list[REASON_CODES] = {
#define REASON(name, code, parameters, sentence, advice) {code, sentence},
#include "../../../tui_probe/reasons/reasons.def"
#undef REASON
};

struct interned {
    struct interned *next;
    struct reason reason;
    char written[];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct interned *all;

static struct interned *keep(enum reason_code code, const char *written)
{
    size_t size = strlen(written) + 1;
    struct interned *interned = malloc(sizeof *interned + size);
    if (!interned)
        return NULL;
    memcpy(interned->written, written, size);
    interned->reason = (struct reason){code, interned->written};
    interned->next = all;
    return all = interned;
}

static const struct reason *find_or_keep(enum reason_code code, const char *text)
{
    char written[WRITTEN_SIZE];
    snprintf(written, sizeof written, "%.*s" BEFORE_CODE "%s", TEXT_SIZE - 1, text, list[code].code);
    for (char *c = written; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    pthread_mutex_lock(&mutex);
    struct interned *interned = all;
    while (interned && strcmp(interned->written, written) != 0)
        interned = interned->next;
    if (!interned)
        interned = keep(code, written);
    pthread_mutex_unlock(&mutex);
    return interned ? &interned->reason : reason(HOST_MEMORY);
}

const struct reason *reason_fill(enum reason_code code, const char *const *parameters)
{
    char text[TEXT_SIZE];
    size_t used = 0;
    for (const char *c = list[code].sentence; *c && used < sizeof text - 1; c++) {
        if (*c != '{') {
            text[used++] = *c;
            continue;
        }
        size_t left = sizeof text - 1 - used, length = strnlen(*parameters, left);
        memcpy(text + used, *parameters++, length);
        used += length;
        c = strchr(c, '}');
    }
    text[used] = '\0';
    return find_or_keep(code, text);
}

const struct reason *reason_of_file(const char *path, int error)
{
    switch (error) {
    case EBADF:
        return reason(DESCRIPTORS_CLOSED);
    case ENOSPC:
    case EDQUOT:
        return reason_with(DISK_FULL, path, strerror(error));
    case EACCES:
    case EPERM:
    case EROFS:
        return reason_with(NOT_PERMITTED, path, strerror(error));
    case EFBIG:
        return reason_with(FILE_LIMIT, path, strerror(error));
    case ENOMEM:
        return reason(HOST_MEMORY);
    default:
        return reason_with(FILE_ERROR, path, strerror(error));
    }
}

const struct reason *reason_of_driver(CUresult result)
{
    return reason_with(DRIVER_ERROR, reason_error_name(result));
}

const struct reason *reason_read(const char *written)
{
    char text[TEXT_SIZE];
    const char *last = NULL;
    for (const char *at = written; (at = strstr(at, BEFORE_CODE)); at++)
        last = at;
    for (int code = 0; last && code < REASON_CODES; code++)
        if (strcmp(last + sizeof BEFORE_CODE - 1, list[code].code) == 0) {
            snprintf(text, sizeof text, "%.*s", (int)(last - written), written);
            return find_or_keep((enum reason_code)code, text);
        }
    return reason_with(ENGINE_SAID, written);
}

const char *reason_number(char text[REASON_NUMBER_SIZE], unsigned long long number)
{
    snprintf(text, REASON_NUMBER_SIZE, "%llu", number);
    return text;
}

const char *reason_budget(char text[REASON_NUMBER_SIZE], unsigned long long bytes)
{
    static const struct {
        char name;
        unsigned shift;
    } units[] = {{'T', 40}, {'G', 30}, {'M', 20}, {'K', 10}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const unsigned long long unit = 1ull << units[i].shift, integer = bytes / unit, remainder = bytes % unit;
        const unsigned long long tenths = (remainder * 10 + unit / 2) / unit;
        if (integer && tenths * unit / 10 == remainder) {
            const int used = snprintf(text, REASON_NUMBER_SIZE, "%llu", integer);
            const char tenth[] = {'.', (char)('0' + tenths), 0};
            snprintf(text + used, REASON_NUMBER_SIZE - (size_t)used, "%s%c", tenths ? tenth : "", units[i].name);
            return text;
        }
    }
    snprintf(text, REASON_NUMBER_SIZE, "%llu bytes", bytes);
    return text;
}

const char *reason_error_name(CUresult result)
{
    static _Thread_local char unnamed[REASON_NUMBER_SIZE] __attribute__((tls_model("initial-exec")));
    const char *name = NULL;
    if (REAL_OR_NOT_FOUND(cuGetErrorName, result, &name) == CUDA_SUCCESS && name)
        return name;
    snprintf(unnamed, sizeof unnamed, "error %d", result);
    return unnamed;
}

void reasons_reset(void)
{
    pthread_mutex_init(&mutex, NULL); /* the list stays: it is complete at any moment */
}
