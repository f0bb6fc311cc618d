#define _GNU_SOURCE
#include "connection.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "own_file.h"
#include "run_notes.h"
#include "settings.h"

enum {
    FIRST_MILLISECONDS = 1000, /* for the answer to a first message */
    PAUSE_NANOSECONDS = 10000000,
    LATER_PART = 4, /* of the program's descriptors, for connections with answers to come */
    LEAST_LATER = 32
};

enum { SILENCE_PATH_BYTES = sizeof((struct sockaddr_un *)NULL)->sun_path + sizeof ".silent" };

/* One question at a time goes over a connection; each thread that asks has one to itself meanwhile. */
struct connection {
    struct connection *next;
    bool in_use;
    pthread_t user;
    bool interrupted; /* while in use; under the lock */
    bool is_later; /* no thread reads its answers for now */
    unsigned id; /* of the question: another one each time that it is taken */
    struct own_file engine;
    char received[LINE_LIMIT]; /* bytes after the last line that was read */
    size_t received_size;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* for the list, in_use and n_questions */
static struct connection *connections;
static unsigned n_questions;
static atomic_bool has_answered; /* a first message: then the engine is there, however busy */

struct connection *connection_take(void)
{
    pthread_mutex_lock(&mutex);
    struct connection *connection = connections;
    while (connection && connection->in_use)
        connection = connection->next;
    if (!connection && (connection = calloc(1, sizeof *connection))) {
        connection->engine.number = -1;
        connection->next = connections;
        connections = connection;
    }
    if (connection) {
        connection->in_use = true;
        connection->user = pthread_self();
        connection->interrupted = false;
        connection->id = n_questions++;
    }
    pthread_mutex_unlock(&mutex);
    return connection;
}

unsigned connection_id(const struct connection *connection)
{
    return connection->id;
}

void connection_give_back(struct connection *connection)
{
    pthread_mutex_lock(&mutex);
    connection->in_use = connection->is_later = false;
    pthread_mutex_unlock(&mutex);
}

/* The limit of connections with answers to come. A thread that is refused one waits for these answers, and no kernel gets
 * its first probe meanwhile: a training step of ResNet-18 has 63 kernels, all of them new within half a second. */
static unsigned most_later(void)
{
    struct rlimit limit;
    const rlim_t descriptors = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
    const rlim_t part = descriptors / LATER_PART;
    return part < LEAST_LATER ? LEAST_LATER : part > UINT_MAX ? UINT_MAX : (unsigned)part;
}

bool connection_set_later(struct connection *connection)
{
    const unsigned most = most_later();
    unsigned n_later = 0;
    pthread_mutex_lock(&mutex);
    for (const struct connection *c = connections; c; c = c->next)
        n_later += c->is_later;
    connection->is_later = n_later < most;
    const bool is_later = connection->is_later;
    pthread_mutex_unlock(&mutex);
    return is_later;
}

void connection_resume(struct connection *connection)
{
    pthread_mutex_lock(&mutex);
    connection->is_later = false;
    connection->user = pthread_self();
    pthread_mutex_unlock(&mutex);
}

void connection_interrupt(pthread_t thread)
{
    pthread_mutex_lock(&mutex);
    for (struct connection *c = connections; c; c = c->next)
        if (c->in_use && !c->is_later && pthread_equal(c->user, thread) && c->engine.number >= 0) {
            c->interrupted = true;
            shutdown(own_file_number(&c->engine), SHUT_RDWR);
        }
    pthread_mutex_unlock(&mutex);
}

bool connection_was_interrupted(struct connection *connection)
{
    pthread_mutex_lock(&mutex);
    const bool interrupted = connection->interrupted;
    pthread_mutex_unlock(&mutex);
    return interrupted;
}

void connection_close(struct connection *connection)
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
        connection_close(c);
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

bool connection_send(struct connection *c, const struct timespec *deadline, const char *line)
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

bool connection_read_line(struct connection *c, const struct timespec *deadline, char line[LINE_LIMIT])
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
static void silence_path(char path[SILENCE_PATH_BYTES])
{
    snprintf(path, SILENCE_PATH_BYTES, "%s.silent", settings.engine);
}

static bool run_gave_up(void)
{
    char path[SILENCE_PATH_BYTES];
    silence_path(path);
    return access(path, F_OK) == 0;
}

/* Lets the other processes of the run give up, too. False if that cannot be noted. */
static bool let_run_give_up(void)
{
    char path[SILENCE_PATH_BYTES];
    silence_path(path);
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
    if (!connection_send(c, deadline, line) || !connection_read_line(c, deadline, line))
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

bool connection_open(struct connection *c)
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
    if (run_gave_up()) {
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
    if (errno == ETIMEDOUT && !is_known && let_run_give_up()) {
        run_note("no-engine", "no answer to the first message");
        errno = ETIMEDOUT;
    }
    return false;
}

void connection_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    for (struct connection *c = connections; c; c = c->next) {
        connection_close(c);
        c->in_use = c->is_later = false; /* by a thread that the child does not have */
    }
    n_questions = 0;
    atomic_store(&has_answered, false);
}
