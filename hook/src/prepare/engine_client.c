#define _GNU_SOURCE
#include "engine_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "event_log.h"
#include "own_file.h"
#include "run_notes.h"
#include "settings.h"

enum {
    LINE_LIMIT = 4096,
    SHOWN_ANSWER = 200,
    FIRST_MILLISECONDS = 1000, /* for the answer to a first message */
    PAUSE_NANOSECONDS = 10000000,
    MOST_SILENCES = 2,
    MOST_LATER = 32 /* connections with answers to come: each takes a descriptor of the program's */
};

/* One question at a time goes over a connection; each thread that asks has one to itself meanwhile. */
struct connection {
    struct connection *next;
    bool in_use;
    pthread_t user;
    bool interrupted; /* while in use; under the lock */
    bool is_later; /* no thread reads its answers for now */
    unsigned id; /* of the question */
    struct own_file engine;
    char received[LINE_LIMIT]; /* bytes after the last line that was read */
    size_t received_size;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* for the list and in_use */
static struct connection *connections;
static atomic_uint requests;
static atomic_uint silences; /* requests in a row that were answered too late or not at all */
static atomic_bool has_answered; /* a first message: then the engine is there, however busy */

/* NULL without memory. */
static struct connection *take_connection(void)
{
    pthread_mutex_lock(&mutex);
    struct connection *free_one = connections;
    while (free_one && free_one->in_use)
        free_one = free_one->next;
    if (!free_one && (free_one = calloc(1, sizeof *free_one))) {
        free_one->engine.number = -1;
        free_one->next = connections;
        connections = free_one;
    }
    if (free_one) {
        free_one->in_use = true;
        free_one->user = pthread_self();
        free_one->interrupted = false;
    }
    pthread_mutex_unlock(&mutex);
    return free_one;
}

static void give_back(struct connection *connection)
{
    pthread_mutex_lock(&mutex);
    connection->in_use = connection->is_later = false;
    pthread_mutex_unlock(&mutex);
}

/* False if too many have answers to come: then its own are waited for. */
static bool set_later(struct connection *connection)
{
    unsigned n_later = 0;
    pthread_mutex_lock(&mutex);
    for (const struct connection *c = connections; c; c = c->next)
        n_later += c->is_later;
    connection->is_later = n_later < MOST_LATER;
    const bool is_later = connection->is_later;
    pthread_mutex_unlock(&mutex);
    return is_later;
}

/* This thread reads the answers now. */
static void resume(struct connection *connection)
{
    pthread_mutex_lock(&mutex);
    connection->is_later = false;
    connection->user = pthread_self();
    pthread_mutex_unlock(&mutex);
}

void engine_interrupt(pthread_t thread)
{
    pthread_mutex_lock(&mutex);
    for (struct connection *c = connections; c; c = c->next)
        if (c->in_use && !c->is_later && pthread_equal(c->user, thread) && c->engine.number >= 0) {
            c->interrupted = true;
            shutdown(own_file_number(&c->engine), SHUT_RDWR);
        }
    pthread_mutex_unlock(&mutex);
}

static bool was_interrupted(struct connection *connection)
{
    pthread_mutex_lock(&mutex);
    const bool interrupted = connection->interrupted;
    pthread_mutex_unlock(&mutex);
    return interrupted;
}

static void disconnect(struct connection *connection)
{
    pthread_mutex_lock(&mutex);
    own_file_close(&connection->engine);
    pthread_mutex_unlock(&mutex);
    connection->received_size = 0;
}

/* An engine that ended was started again, and takes new connections. */
static void leave_ended(struct connection *c)
{
    char byte;
    const ssize_t n = c->engine.number < 0 ? 1 : recv(own_file_number(&c->engine), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        disconnect(c);
}

static long milliseconds_until(const struct timespec *deadline)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (deadline->tv_sec - now.tv_sec) * 1000 + (deadline->tv_nsec - now.tv_nsec) / 1000000;
}

static bool wait_for(struct connection *c, short events, const struct timespec *deadline)
{
    const long left = milliseconds_until(deadline);
    struct pollfd poller = {.fd = own_file_number(&c->engine), .events = events};
    if (poller.fd < 0)
        return false;
    if (left <= 0) {
        errno = ETIMEDOUT;
        return false;
    }
    int ready = poll(&poller, 1, (int)left);
    if (ready == 0)
        errno = ETIMEDOUT;
    return ready > 0 || (ready < 0 && errno == EINTR);
}

static bool send_line(struct connection *c, const struct timespec *deadline, const char *line)
{
    size_t size = strlen(line);
    while (size) {
        ssize_t n = send(own_file_number(&c->engine), line, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            line += n;
            size -= (size_t)n;
        } else if ((errno != EAGAIN && errno != EINTR) || !wait_for(c, POLLOUT, deadline)) {
            return false;
        }
    }
    return true;
}

/* Reads up to the next newline, which is cut off. */
static bool read_line(struct connection *c, const struct timespec *deadline, char line[LINE_LIMIT])
{
    for (;;) {
        char *end = memchr(c->received, '\n', c->received_size);
        if (end) {
            size_t length = (size_t)(end - c->received);
            memcpy(line, c->received, length);
            line[length] = '\0';
            c->received_size -= length + 1;
            memmove(c->received, end + 1, c->received_size);
            return true;
        }
        if (c->received_size == sizeof c->received) {
            errno = EMSGSIZE;
            return false;
        }
        if (!wait_for(c, POLLIN, deadline))
            return false;
        ssize_t n = recv(own_file_number(&c->engine), c->received + c->received_size,
                         sizeof c->received - c->received_size, MSG_DONTWAIT);
        if (n == 0)
            errno = ECONNRESET;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        c->received_size += n > 0 ? (size_t)n : 0;
    }
}

/* A file next to the socket, made by the first process of the run that had no answer to its first message. */
static bool run_gave_up(bool now)
{
    char path[sizeof((struct sockaddr_un *)NULL)->sun_path + sizeof ".silent"];
    snprintf(path, sizeof path, "%s.silent", settings.engine);
    if (!now)
        return access(path, F_OK) == 0;
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return errno == EEXIST;
    close(file);
    return true;
}

/* True if the engine answers a first message. */
static bool greet(struct connection *c, const struct timespec *deadline)
{
    char line[LINE_LIMIT];
    snprintf(line, sizeof line, "hello\t1\t%d\n", (int)getpid());
    if (!send_line(c, deadline, line) || !read_line(c, deadline, line))
        return false;
    errno = EPROTO;
    return strcmp(line, "hello\t1") == 0;
}

/* The queue of an engine that takes no connections may be full. */
static bool connect_socket(struct own_file *engine, const struct sockaddr_un *address, const struct timespec *deadline)
{
    const struct timespec pause = {0, PAUSE_NANOSECONDS};
    if (!own_file_take(engine, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)))
        return false;
    while (connect(own_file_number(engine), (const struct sockaddr *)address, sizeof *address) != 0) {
        if (errno != EAGAIN && errno != EINTR)
            return false;
        if (milliseconds_until(deadline) <= 0) {
            errno = ETIMEDOUT;
            return false;
        }
        nanosleep(&pause, NULL);
    }
    return true;
}

/* The socket is the connection's after that, connected or not: then another thread may interrupt this one. */
static bool connect_to(struct connection *c, const struct sockaddr_un *address, const struct timespec *deadline)
{
    struct own_file engine;
    const bool connected = connect_socket(&engine, address, deadline);
    const int error = errno;
    pthread_mutex_lock(&mutex);
    c->engine = engine;
    pthread_mutex_unlock(&mutex);
    errno = error;
    return connected;
}

static bool connect_engine(struct connection *c)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    leave_ended(c);
    if (c->engine.number >= 0)
        return true;
    if (!settings.engine || strlen(settings.engine) >= sizeof address.sun_path) {
        errno = settings.engine ? ENAMETOOLONG : ENOENT;
        return false;
    }
    strcpy(address.sun_path, settings.engine);
    if (run_gave_up(false)) {
        errno = ETIMEDOUT;
        return false;
    }
    const unsigned timeout_ms = settings.engine_timeout * 1000;
    const bool is_known = atomic_load(&has_answered);
    const struct timespec deadline =
        clock_deadline(is_known || timeout_ms < FIRST_MILLISECONDS ? timeout_ms : FIRST_MILLISECONDS);
    if (connect_to(c, &address, &deadline) && greet(c, &deadline)) {
        atomic_store(&has_answered, true);
        return true;
    }
    if (errno == ETIMEDOUT && !is_known && run_gave_up(true)) {
        run_note("no-engine", "no answer to the first message");
        errno = ETIMEDOUT;
    }
    return false;
}

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
        if (!read_line(c, &deadline, line))
            return silent();
        if (!understand(line, c->id, &answers[i])) {
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
    if (!connect_engine(c)) {
        const int error = errno;
        if (atomic_load(&silences) || error == ETIMEDOUT)
            give_up();
        if (error == ETIMEDOUT)
            return reason_with(ENGINE_SILENT, strerror(error));
        const char *socket = settings.engine ? settings.engine : "TUI_PROBE_ENGINE";
        return reason_with(ENGINE_MISSING, socket, strerror(error));
    }
    const struct timespec deadline = clock_deadline(settings.engine_timeout * 1000);
    return send_line(c, &deadline, question) ? read_answers(c, ENGINE_FAILED, answers, n) : silent();
}

/* The reason of answers that do not come since the connection has PROBLEM. */
static const struct reason *break_off(struct connection *connection, const struct reason *problem)
{
    const bool interrupted = was_interrupted(connection);
    disconnect(connection);
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
    struct connection *connection = take_connection();
    for (size_t i = 0; i < n; i++)
        answers[i] = failed(NULL);
    if (connection)
        connection->id = atomic_fetch_add(&requests, 1);
    if (strpbrk(directory, "\t\n") || strpbrk(kernel, "\t\n"))
        problem = reason(NAME_NOT_TOLD);
    else if (!connection || asprintf(&question, "%s\t%u\t%s\t%s\t%s%s\n", word, connection->id, directory, architecture,
                                     kernel, tail) < 0)
        problem = reason(HOST_MEMORY);
    else if ((problem = ask(connection, question, answers, n)))
        problem = break_off(connection, problem);
    fill(answers, n, problem);
    free(question);
    if (connection && !problem && is_any_later(answers, n))
        return connection;
    if (connection)
        give_back(connection);
    return NULL;
}

void engine_prepare_later(struct connection *connection, struct engine_answer *answers, size_t n)
{
    resume(connection);
    const struct reason *problem = read_answers(connection, ENGINE_LATER, answers, n);
    if (!problem && is_any_later(answers, n))
        problem = reason_with(ENGINE_CONFUSED, "later");
    if (problem)
        problem = break_off(connection, problem);
    fill(answers, n, problem);
    give_back(connection);
}

void engine_leave_later(struct connection *connection)
{
    resume(connection);
    disconnect(connection);
    give_back(connection);
}

struct connection *engine_prepare(const char *directory, const char *architecture, const char *kernel, unsigned threads,
                                  struct engine_answer *answers, size_t n)
{
    char tail[16];
    snprintf(tail, sizeof tail, "\t%u", threads);
    struct connection *connection = prepare("prepare", directory, architecture, kernel, tail, answers, n);
    if (!connection || set_later(connection))
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
    pthread_mutex_init(&mutex, NULL);
    for (struct connection *c = connections; c; c = c->next) {
        disconnect(c);
        c->in_use = c->is_later = false; /* by a thread that the child does not have */
    }
    atomic_store(&requests, 0);
    atomic_store(&silences, 0);
    atomic_store(&has_answered, false);
}
