#define _GNU_SOURCE
#include "engine_client.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "connection.h"
#include "event_log.h"
#include "settings.h"

enum { SHOWN_ANSWER = 200, MOST_SILENCES = 2 };

static atomic_uint silences; /* requests in a row that were answered too late or not at all */

static struct engine_answer failed(const struct reason *reason)
{
    return (struct engine_answer){.outcome = ENGINE_FAILED, .reason = reason};
}

/* "ok\t<id>\t<text>" and its like; ANSWER is left as it is if the line is none of them. */
static bool understand(char *line, unsigned id, struct engine_answer *answer)
{
    static const char *const words[] = {"ok", "skipped", "failed", "later"};
    char *unread = line;
    const char *word = strsep(&unread, "\t");
    const char *number = unread ? strsep(&unread, "\t") : NULL;
    if (!number || !unread || strtoul(number, NULL, 10) != id)
        return false;
    for (int i = 0; i <= ENGINE_LATER; i++) {
        if (strcmp(word, words[i]) != 0)
            continue;
        *answer = (struct engine_answer){.outcome = (enum engine_outcome)i};
        if (i == ENGINE_OK)
            snprintf(answer->text, sizeof answer->text, "%s", unread);
        else if (i != ENGINE_LATER)
            answer->reason = reason_read(unread);
        return true;
    }
    return false;
}

static void give_up(void)
{
    atomic_store(&silences, MOST_SILENCES);
    event_log("[probe] engine given up: new kernels are run unprobed from now on\n");
}

/* The kernel may be what takes long: the next one is asked for once more. */
static const struct reason *silent(void)
{
    const struct reason *reason = reason_with(ENGINE_SILENT, strerror(errno));
    if (errno == ETIMEDOUT && atomic_fetch_add(&silences, 1) + 1 == MOST_SILENCES)
        give_up();
    return reason;
}

/* The answers come in the order of the probes, each when it is known. Reads those that are NOT_YET. Returns why there
 * are no more; NULL if all are there. */
static const struct reason *read_answers(struct connection *c, enum engine_outcome not_yet,
                                         struct engine_answer *answers, size_t n)
{
    const struct timespec deadline = clock_deadline(settings.engine_timeout * 1000);
    char line[LINE_LIMIT];
    for (size_t i = 0; i < n; i++) {
        if (answers[i].outcome != not_yet)
            continue;
        if (!connection_read_line(c, &deadline, line))
            return silent();
        if (!understand(line, connection_id(c), &answers[i])) {
            line[SHOWN_ANSWER] = '\0';
            return reason_with(ENGINE_CONFUSED, line);
        }
    }
    atomic_store(&silences, 0);
    return NULL;
}

static const struct reason *ask(struct connection *c, const char *question, struct engine_answer *answers, size_t n)
{
    if (atomic_load(&silences) >= MOST_SILENCES) {
        errno = ETIMEDOUT;
        return reason_with(ENGINE_SILENT, strerror(errno));
    }
    if (!connection_open(c)) {
        const int error = errno;
        if (atomic_load(&silences) || error == ETIMEDOUT)
            give_up();
        if (error == ETIMEDOUT)
            return reason_with(ENGINE_SILENT, strerror(error));
        const char *socket = settings.engine ? settings.engine : "TUI_PROBE_ENGINE";
        return reason_with(ENGINE_MISSING, socket, strerror(error));
    }
    const struct timespec deadline = clock_deadline(settings.engine_timeout * 1000);
    return connection_send(c, &deadline, question) ? read_answers(c, ENGINE_FAILED, answers, n) : silent();
}

/* The reason of answers that do not come since the connection has PROBLEM. */
static const struct reason *break_off(struct connection *connection, const struct reason *problem)
{
    const bool interrupted = connection_was_interrupted(connection);
    connection_close(connection);
    return interrupted ? reason(BEING_PREPARED) : problem;
}

static bool is_any_later(const struct engine_answer *answers, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any = any || answers[i].outcome == ENGINE_LATER;
    return any;
}

/* Answers that did not come. */
static void fill(struct engine_answer *answers, size_t n, const struct reason *problem)
{
    for (size_t i = 0; i < n && problem; i++)
        if (answers[i].outcome == ENGINE_LATER || (answers[i].outcome == ENGINE_FAILED && !answers[i].reason))
            answers[i] = failed(problem);
}

/* TAIL ends the question. Returns the connection if answers are still to come. */
static struct connection *prepare(const char *word, const char *directory, const char *architecture, const char *kernel,
                                  const char *tail, struct engine_answer *answers, size_t n)
{
    char *question = NULL;
    const struct reason *problem = NULL;
    struct connection *connection = connection_take();
    for (size_t i = 0; i < n; i++)
        answers[i] = failed(NULL);
    if (strpbrk(directory, "\t\n") || strpbrk(kernel, "\t\n"))
        problem = reason(NAME_NOT_TOLD);
    else if (!connection || asprintf(&question, "%s\t%u\t%s\t%s\t%s%s\n", word, connection_id(connection), directory,
                                     architecture, kernel, tail) < 0)
        problem = reason(HOST_MEMORY);
    else if ((problem = ask(connection, question, answers, n)))
        problem = break_off(connection, problem);
    fill(answers, n, problem);
    free(question);
    if (connection && !problem && is_any_later(answers, n))
        return connection;
    if (connection)
        connection_give_back(connection);
    return NULL;
}

void engine_prepare_later(struct connection *connection, struct engine_answer *answers, size_t n)
{
    connection_resume(connection);
    const struct reason *problem = read_answers(connection, ENGINE_LATER, answers, n);
    if (!problem && is_any_later(answers, n))
        problem = reason_with(ENGINE_CONFUSED, "later");
    if (problem)
        problem = break_off(connection, problem);
    fill(answers, n, problem);
    connection_give_back(connection);
}

void engine_leave_later(struct connection *connection)
{
    connection_resume(connection);
    connection_close(connection);
    connection_give_back(connection);
}

struct connection *engine_prepare(const char *directory, const char *architecture, const char *kernel, unsigned threads,
                                  struct engine_answer *answers, size_t n)
{
    char tail[16];
    snprintf(tail, sizeof tail, "\t%u", threads);
    struct connection *connection = prepare("prepare", directory, architecture, kernel, tail, answers, n);
    if (!connection || connection_set_later(connection))
        return connection;
    engine_prepare_later(connection, answers, n);
    return NULL;
}

/* For questions whose answers are used together. */
static void prepare_all(const char *word, const char *directory, const char *architecture, const char *kernel,
                        const char *tail, struct engine_answer *answers, size_t n)
{
    struct connection *connection = prepare(word, directory, architecture, kernel, tail, answers, n);
    if (connection)
        engine_prepare_later(connection, answers, n);
}

void engine_prepare_parts(const char *directory, const char *architecture, const char *kernel, unsigned threads,
                          struct engine_answer *answers, size_t n)
{
    char tail[16];
    snprintf(tail, sizeof tail, "\t%u", threads);
    prepare_all("separate", directory, architecture, kernel, tail, answers, n);
}

void engine_prepare_sampled(const char *directory, const char *architecture, const char *kernel, unsigned threads,
                            size_t place, struct engine_answer *answer)
{
    char tail[32];
    snprintf(tail, sizeof tail, "\t%u\t%u", (unsigned)place, threads);
    prepare_all("sample", directory, architecture, kernel, tail, answer, 1);
}

void engine_reset(void)
{
    connection_reset();
    atomic_store(&silences, 0);
}
