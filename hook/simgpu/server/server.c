#include "server.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver.h"
#include "findings.h"
#include "report.h"
#include "server_process.h"

static const size_t LARGEST_REPLY = UINT32_C(1) << 31;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int connection = -1;
static struct stat connected; /* what `connection` is, as long as the program has not closed it */
static bool started, greeted;
static atomic_int failure; /* a CUresult: why the server answers no more */

CUresult server_start(void)
{
    if (started)
        return CUDA_SUCCESS;
    struct server_setup setup = {
        .memory_file = driver.memory_file,
        .memory_address = (uintptr_t)driver.memory,
        .memory_bytes = 2 * driver.memory_bytes,
        .sm_count = driver.sm_count,
        .generation = driver.generation,
    };
    connection = server_spawn(&setup);
    started = connection >= 0 && fstat(connection, &connected) == 0;
    return started ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

/* A program may close all descriptors that it does not know, and get this number for a file of its own. */
static bool is_connected(void)
{
    struct stat now;
    return connection >= 0 && fstat(connection, &now) == 0 && now.st_dev == connected.st_dev &&
           now.st_ino == connected.st_ino;
}

static bool send_all(const void *bytes, size_t count)
{
    for (const char *next = bytes; count;) {
        ssize_t sent = send(connection, next, count, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        next += sent;
        count -= (size_t)sent;
    }
    return true;
}

static bool receive_all(void *bytes, size_t count)
{
    for (char *next = bytes; count;) {
        ssize_t received = recv(connection, next, count, 0);
        if (received < 0 && errno == EINTR)
            continue;
        if (received <= 0)
            return false;
        next += received;
        count -= (size_t)received;
    }
    return true;
}

/* The server's first words, read when the first reply is needed: it starts while the program runs. */
static bool greet(void)
{
    uint32_t version = 0;
    if (greeted)
        return true;
    if (!receive_all(&version, sizeof version))
        return false;
    greeted = version == PROTOCOL_VERSION;
    if (!greeted) {
        report("the tui_probe of %s uses protocol %u, but this library uses protocol %d: install both from the same"
               " version",
               server_python(), version, PROTOCOL_VERSION);
    }
    return greeted;
}

static bool receive_reply(uint32_t *status, struct reply *reply)
{
    uint32_t header[2];
    if (!receive_all(header, sizeof header) || header[1] > LARGEST_REPLY)
        return false;
    reply->memory = malloc(header[1] + 1);
    if (!reply->memory || !receive_all(reply->memory, header[1]))
        return false;
    reply->body = (struct reader){.next = reply->memory, .end = reply->memory + header[1]};
    *status = header[0];
    return true;
}

static bool exchange(enum request_kind kind, const struct message *request, uint32_t *status, struct reply *reply)
{
    if (!is_connected() || !greet())
        return false;
    uint32_t header[2] = {(uint32_t)kind, (uint32_t)request->length};
    if (!send_all(header, sizeof header) || !send_all(request->bytes, request->length))
        return false;
    while (receive_reply(status, reply)) {
        if (*status != STATUS_RUNNING)
            return true;
        findings_keep_running(&reply->body);
        reply_free(reply);
        *status = STATUS_OK; /* no reply so far */
    }
    return false;
}

static CUresult result_of(uint32_t status)
{
    switch (status) {
    case STATUS_OK:
        return CUDA_SUCCESS;
    case STATUS_NOT_SUPPORTED:
        return CUDA_ERROR_NOT_SUPPORTED;
    case STATUS_NO_PTX:
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    case STATUS_INVALID_PTX:
        return CUDA_ERROR_INVALID_PTX;
    case STATUS_UNSUPPORTED_VERSION:
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    case STATUS_ILLEGAL_ADDRESS:
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    case STATUS_MISALIGNED_ADDRESS:
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    case STATUS_ASSERT:
        return CUDA_ERROR_ASSERT;
    case STATUS_DEADLOCK:
        return CUDA_ERROR_LAUNCH_TIMEOUT;
    default:
        return CUDA_ERROR_LAUNCH_FAILED;
    }
}

/* Tells once that the server is gone, and what that means for a call. */
static CUresult give_up(void)
{
    if (connection >= 0) {
        bool is_open = is_connected();
        report("its server (%s -m tui_probe.simgpu) %s: no kernel runs in this process", server_python(),
               !is_open  ? "cannot be reached, because the program closed a file descriptor that is not its own"
               : greeted ? "has ended"
                         : "did not start");
        server_forget();
        failure = greeted ? CUDA_ERROR_LAUNCH_FAILED : CUDA_ERROR_NOT_INITIALIZED;
    }
    return server_failure();
}

CUresult server_failure(void)
{
    return (CUresult)failure;
}

CUresult server_call(enum request_kind kind, const struct message *request, struct reply *reply)
{
    uint32_t status = STATUS_OK;
    *reply = (struct reply){0};
    if (request->failed || request->length > UINT32_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    CUresult result = exchange(kind, request, &status, reply) ? result_of(status) : give_up();
    pthread_mutex_unlock(&lock);
    if (status != STATUS_OK)
        reply->error = reader_text(&reply->body);
    return result;
}

void reply_free(struct reply *reply)
{
    free(reply->error);
    free(reply->memory);
    *reply = (struct reply){0};
}

void server_forget(void)
{
    if (is_connected())
        close(connection);
    connection = -1;
}
