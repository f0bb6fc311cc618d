#include "findings.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct finding {
    char *text;
    struct finding *next;
};

struct list {
    struct finding *first, **end;
};

/* Not the driver's lock: a profiler asks at the end of the process, when a thread may have been stopped with that. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list ended = {NULL, &ended.first}, running = {NULL, &running.first};
static uint32_t n_taken; /* the first findings of the running launch, which a profiler has taken */

static void append(struct list *list, char *text)
{
    struct finding *finding = text ? calloc(1, sizeof *finding) : NULL;
    if (!finding) {
        free(text);
        return;
    }
    finding->text = text;
    *list->end = finding;
    list->end = &finding->next;
}

/* The oldest finding, for the caller to free; NULL where there are no more. */
static char *remove_first(struct list *list)
{
    struct finding *finding = list->first;
    if (!finding)
        return NULL;
    char *text = finding->text;
    list->first = finding->next;
    list->end = list->first ? list->end : &list->first;
    free(finding);
    return text;
}

/* Replaces the findings of the running launch by those in BODY, without those that were taken. */
static void replace_running(struct list *list, struct reader *body)
{
    for (char *text = remove_first(&running); text; text = remove_first(&running))
        free(text);
    const uint32_t count = reader_u32(body);
    for (uint32_t i = 0; i < count && !body->failed; i++) {
        char *text = reader_text(body);
        if (i >= n_taken)
            append(list, text);
        else
            free(text);
    }
}

void findings_keep(struct reader *body)
{
    pthread_mutex_lock(&lock);
    replace_running(&ended, body);
    n_taken = 0;
    pthread_mutex_unlock(&lock);
}

void findings_keep_running(struct reader *body)
{
    pthread_mutex_lock(&lock);
    replace_running(&running, body);
    pthread_mutex_unlock(&lock);
}

/* A finding is taken once; "" where there are no more. One that does not fit is cut. */
static void hand_over(char *finding, char *text, size_t size)
{
    snprintf(text, size, "%s", finding ? finding : "");
    free(finding);
}

static void take(char *text, size_t size)
{
    pthread_mutex_lock(&lock);
    char *finding = remove_first(&ended);
    pthread_mutex_unlock(&lock);
    hand_over(finding, text, size);
}

static void take_running(char *text, size_t size)
{
    pthread_mutex_lock(&lock);
    char *finding = remove_first(&running);
    n_taken += finding != NULL;
    pthread_mutex_unlock(&lock);
    hand_over(finding, text, size);
}

const void *findings_table(const void *id)
{
    static const unsigned char NAME[16] = "tui-probe check"; /* hook/src/log/simulated_fault.c asks for it */
    static const struct {
        size_t size;
        void (*take)(char *text, size_t size);
        void (*take_running)(char *text, size_t size);
    } table = {sizeof table, take, take_running};
    return memcmp(id, NAME, sizeof NAME) == 0 ? &table : NULL;
}
