#define _GNU_SOURCE
#include "ahead.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "device.h"
#include "errand.h"
#include "image_parts.h"
#include "kernel_folder.h"
#include "real.h"
#include "sandbox.h"
#include "settings.h"

/* A larger image is one of a library, of whose kernels few are launched; a process with more images makes them as it
 * runs, and launches each when it is made. */
enum { MOST_BYTES = 16 << 20, MOST_IMAGES = 256 };

enum { PATH_BYTES = sizeof((struct sockaddr_un *)NULL)->sun_path + 32 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct digest sent[MOST_IMAGES];
static unsigned n_sent;

/* A datagram socket whose peer is the engine's for images; -1 if the engine has none, for it prepares nothing ahead. */
static int connect_engine(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int length = snprintf(address.sun_path, sizeof address.sun_path, "%s.ahead", settings.engine);
    if (length < 0 || (size_t)length >= sizeof address.sun_path)
        return -1;
    const int engine = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (engine >= 0 && connect(engine, (const struct sockaddr *)&address, sizeof address) != 0) {
        close(engine);
        return -1;
    }
    return engine;
}

/* Gives IMAGE a number of this process. False if it has one, or if there are too many. */
static bool take_number(struct image *image, unsigned *number)
{
    struct digest digest;
    if (!image_digest(image, &digest))
        return false;
    pthread_mutex_lock(&mutex);
    bool is_new = n_sent < MOST_IMAGES;
    for (unsigned i = 0; is_new && i < n_sent; i++)
        is_new = !digest_equal(&sent[i], &digest);
    if (is_new) {
        *number = n_sent;
        sent[n_sent++] = digest;
    }
    pthread_mutex_unlock(&mutex);
    return is_new;
}

/* The engine removes the file that it was sent. */
static void send_part(int engine, const struct image *image, unsigned parts, unsigned number, const char *target)
{
    char path[PATH_BYTES], line[PATH_BYTES + DEVICE_TARGET_SIZE];
    const int length =
        snprintf(path, sizeof path, "%s.image.%d.%u", settings.engine, (int)getpid(), number) < (int)sizeof path
            ? snprintf(line, sizeof line, "%s\t%s", path, target)
            : -1;
    if (length < 0)
        return;
    if (kernel_folder_write_part(image, parts, path) || send(engine, line, (size_t)length, MSG_NOSIGNAL) != length)
        unlink(path);
}

static bool is_sent_by_size(const struct image *image)
{
    return (image->ptx || image->code) && !image->is_too_large && image->size <= MOST_BYTES;
}

/* A library is loaded for all devices: without a context it is prepared for the first one. */
static void send_image(void *argument)
{
    struct image *image = argument;
    char target[DEVICE_TARGET_SIZE];
    CUdevice device;
    unsigned parts, number;
    if (sandbox_is_deadly())
        return;
    if (REAL_OR_NOT_FOUND(cuCtxGetDevice, &device) != CUDA_SUCCESS)
        device = 0;
    const int engine = connect_engine();
    if (engine < 0)
        return;
    if (!image_parts_choose("", image, device, &parts) && device_target(device, target) && take_number(image, &number))
        send_part(engine, image, parts, number, target);
    close(engine);
}

void ahead_image_loaded(struct image *image)
{
    if (settings.engine && !settings.under_ncu && !settings.memusage && image && is_sent_by_size(image))
        errand_run(send_image, image);
}

void ahead_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
}
