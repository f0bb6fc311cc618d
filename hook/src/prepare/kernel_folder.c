#define _GNU_SOURCE
#include "kernel_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "event_log.h"
#include "own_file.h"
#include "reservations.h"
#include "sandbox.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static struct budget_folder last_folder;

void kernel_folder_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void kernel_folder_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

void kernel_folder_claim(bool *in_preparation)
{
    while (*in_preparation)
        pthread_cond_wait(&released, &mutex);
    *in_preparation = true;
}

void kernel_folder_release(bool *in_preparation)
{
    *in_preparation = false;
    pthread_cond_broadcast(&released);
}

static bool write_file(const char *path, const void *bytes, size_t size)
{
    struct own_file file;
    if (!own_file_create(&file, AT_FDCWD, path, 0))
        return false;
    const bool written = own_file_write_all(&file, bytes, size);
    const int error = errno;
    const bool closed = own_file_close(&file);
    if (!written)
        errno = error;
    return written && closed;
}

const struct reason *kernel_folder_write_part(const struct image *image, unsigned kept, const char *path)
{
    struct image_part part;
    const struct reason *reason = image_part_make(image, kept, &part);
    if (!reason && !write_file(path, part.bytes, part.size))
        reason = reason_of_file(path, errno);
    image_part_free(&part);
    return reason;
}

/* An image with many kernels is written once; the other directories link to it. */
const struct reason *kernel_folder_save(const char *directory, struct image *image, unsigned kept, bool *written)
{
    char *path;
    if (asprintf(&path, "%s/original.bin", directory) < 0)
        return reason(HOST_MEMORY);
    *written = !image->saved_path || image->saved != kept || link(image->saved_path, path) != 0;
    const struct reason *reason = *written ? kernel_folder_write_part(image, kept, path) : NULL;
    if (reason) {
        free(path);
        return reason;
    }
    event_log("[probe] write %s\n", path);
    if (image->saved_path && image->saved == kept) {
        free(path);
        return NULL;
    }
    free(image->saved_path);
    image->saved_path = path;
    image->saved = kept;
    return NULL;
}

/* The engine continues writing in a folder for a moment: the one before this is looked at again. */
void kernel_folder_put(struct budget_folder folder)
{
    budget_count_folder(&last_folder);
    free(last_folder.path);
    last_folder = folder;
    budget_count_folder(&last_folder);
}

void kernel_folder_count(char *directory, bool has_image)
{
    kernel_folder_put((struct budget_folder){.path = directory, .has_image = has_image});
}

struct budget_folder kernel_folder_take(void)
{
    const struct budget_folder folder = last_folder;
    last_folder = (struct budget_folder){0};
    return folder;
}

void kernel_folder_count_last(void)
{
    if (sandbox_is_deadly() || pthread_mutex_trylock(&mutex) != 0)
        return; /* the end of the program does not wait for the engine */
    budget_count_folder(&last_folder);
    pthread_mutex_unlock(&mutex);
}

void kernel_folder_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    pthread_cond_init(&released, NULL);
    last_folder = (struct budget_folder){0};
}
