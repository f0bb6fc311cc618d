#include "log_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "control.h"
#include "own_file.h"

/* Lines wait in memory until the first launch gives the trace a directory: a program that loads modules for ever and
 * launches nothing must not fill it. LOCK_MILLISECONDS: a thread that is gone may hold the lock for ever; at the end of
 * the process a line is then written past it. */
enum { PENDING_LIMIT = 16 << 20, WRITE_SIZE = 1 << 16, BLOCK_BYTES = 4096, LOCK_MILLISECONDS = 100, PAST_BYTES = 2048 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char *buffer;
static size_t used, capacity;
static uint64_t lines_lost;
static atomic_bool hurried, taken_for_good; /* the lock by a thread that does not continue */
static struct own_file file = {.number = -1};
static char *file_path; /* of this file, for the program may close it */

void log_file_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void log_file_hurry(void)
{
    atomic_store(&hurried, true);
}

bool log_file_lock_in_time(void)
{
    struct timespec until;
    if (!atomic_load_explicit(&hurried, memory_order_relaxed)) {
        log_file_lock();
        return true;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += atomic_load(&taken_for_good) ? 0 : LOCK_MILLISECONDS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    const bool locked = pthread_mutex_timedlock(&mutex, &until) == 0;
    atomic_store(&taken_for_good, !locked);
    return locked;
}

void log_file_write_past(const char *format, va_list arguments)
{
    char line[PAST_BYTES];
    const int length = vsnprintf(line, sizeof line, format, arguments);
    if (length > 0)
        own_file_write_all(&file, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

void log_file_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

/* The program has closed the file, or has another under its number: opens it again, to tell why the trace ends. */
static bool open_again(void)
{
    struct own_file opened;
    if (!file_path ||
        !own_file_take(&opened, open(file_path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)))
        return false;
    const bool same = opened.device == file.device && opened.inode == file.inode;
    if (same)
        file = opened;
    else
        own_file_close(&opened);
    return same;
}

void log_file_write(void)
{
    if (file.number < 0)
        return;
    if (own_file_number(&file) >= 0 || open_again())
        own_file_write_all(&file, buffer, used); /* a full disk must not stop the program; the launches still count */
    used = 0;
}

/* The bytes in the file, or that soon will be. */
static void count(size_t bytes)
{
    control_use(&control->log_bytes, bytes);
    control_use(&control->trace_bytes, bytes);
}

static bool make_room(size_t length)
{
    if (used + length < capacity)
        return true;
    if (file.number < 0 && used + length > PENDING_LIMIT)
        return false;
    size_t wanted = capacity ? capacity * 2 : 4096;
    while (wanted <= used + length)
        wanted *= 2;
    char *grown = realloc(buffer, wanted);
    if (!grown)
        return false;
    buffer = grown;
    capacity = wanted;
    return true;
}

void log_file_append_list(const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(used < capacity ? buffer + used : NULL, capacity - used, format, arguments);
    if (length >= 0 && (size_t)length >= capacity - used) {
        if (make_room((size_t)length))
            vsnprintf(buffer + used, capacity - used, format, again);
        else
            length = -1;
    }
    va_end(again);
    if (length < 0)
        lines_lost++;
    else
        used += (size_t)length;
    if (file.number >= 0 && length > 0)
        count((size_t)length);
    if (file.number >= 0 && used > WRITE_SIZE && buffer[used - 1] == '\n')
        log_file_write();
}

void log_file_append(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_file_append_list(format, arguments);
    va_end(arguments);
}

bool log_file_open(const char *path, const char *header)
{
    struct own_file opened;
    if (!own_file_create(&opened, AT_FDCWD, path, O_APPEND))
        return false;
    pthread_mutex_lock(&mutex);
    char *pending = buffer;
    size_t pending_used = used;
    buffer = NULL;
    used = capacity = 0;
    log_file_append("%s", header);
    file = opened;
    file_path = strdup(path);
    count(used + pending_used);
    control_use(&control->trace_bytes, BLOCK_BYTES); /* the last one is not full */
    log_file_write();
    free(buffer);
    buffer = pending;
    capacity = used = pending_used;
    log_file_write();
    if (lines_lost)
        log_file_append("[init] lost %llu lines before the first launch\n", (unsigned long long)lines_lost);
    log_file_write();
    pthread_mutex_unlock(&mutex);
    return true;
}

void log_file_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    atomic_store(&hurried, false);
    atomic_store(&taken_for_good, false);
    own_file_close(&file);
    free(file_path);
    file_path = NULL;
    buffer = NULL; /* a thread of the parent may have been growing it */
    used = capacity = 0;
    lines_lost = 0;
}
