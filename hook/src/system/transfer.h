/* Reads and writes of files, repeated until all is done: each moves as much as it likes, and a signal may
 * interrupt it. */
#ifndef TUI_PROBE_TRANSFER_H
#define TUI_PROBE_TRANSFER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Moves LEFT bytes at most, behind the first DONE. Returns how many, as read and write do. */
typedef ssize_t transfer_step(const void *argument, size_t done, size_t left);

/* False, with errno, if a step fails or moves nothing before SIZE bytes are moved. */
static inline bool transfer_all(transfer_step *step, const void *argument, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = step(argument, done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

#endif
