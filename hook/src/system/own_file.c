#define _GNU_SOURCE
#include "own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "outside.h"
#include "transfer.h"

/* The kernel's table of descriptors has an entry for each number below the highest: not too high. */
enum { HIGHEST = 4096, ROOM = 64 };

enum { OWNER_FILE = 0600, OWNER_FOLDER = 0700, MODE_BITS = 07777 };

static atomic_bool lost;

/* The first descriptor of tui-probe; 0 where a process may have so few that ours are best left where they are. */
static int lowest(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    const int most = limit.rlim_cur < HIGHEST ? (int)limit.rlim_cur : HIGHEST;
    return most > 2 * ROOM ? most - ROOM : 0;
}

bool own_file_take(struct own_file *file, int number)
{
    struct stat status;
    *file = NO_OWN_FILE;
    if (number < 0)
        return false;
    const int from = lowest(), moved = from > number ? fcntl(number, F_DUPFD_CLOEXEC, from) : -1;
    if (moved >= 0) {
        close(number);
        number = moved;
    }
    if (fstat(number, &status) != 0) {
        close(number);
        return false;
    }
    *file = (struct own_file){number, status.st_dev, status.st_ino};
    return true;
}

bool own_file_create(struct own_file *file, int folder, const char *path, int flags)
{
    struct stat status;
    if (!own_file_take(file, openat(folder, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | flags, 0666)))
        return false;
    if (fstat(file->number, &status) == 0 && (status.st_mode & OWNER_FILE) != OWNER_FILE)
        fchmod(file->number, (status.st_mode | OWNER_FILE) & MODE_BITS);
    return true;
}

bool own_folder_create(int folder, const char *path, mode_t mode)
{
    struct stat status;
    if (mkdirat(folder, path, mode) != 0)
        return false;
    if (fstatat(folder, path, &status, AT_SYMLINK_NOFOLLOW) == 0 && (status.st_mode & OWNER_FOLDER) != OWNER_FOLDER)
        if (fchmodat(folder, path, (status.st_mode | OWNER_FOLDER) & MODE_BITS, 0) != 0)
            errno = 0; /* a file system without modes: what is created in the directory shows whether it can be used */
    return true;
}

static bool is_ours(const struct own_file *file)
{
    struct stat status;
    return fstat(file->number, &status) == 0 && status.st_dev == file->device && status.st_ino == file->inode;
}

int own_file_number(const struct own_file *file)
{
    if (file->number >= 0 && is_ours(file))
        return file->number;
    if (file->number >= 0)
        atomic_store(&lost, true);
    errno = EBADF;
    return -1;
}

/* SIGXFSZ, which a thread gets for a write beyond the limit of its process, held back. */
struct quiet {
    sigset_t before;
    bool waits; /* one of the program's waits already */
};

static void quiet_begin(struct quiet *quiet)
{
    sigset_t only, waiting;
    sigemptyset(&only);
    sigaddset(&only, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &only, &quiet->before);
    quiet->waits = sigismember(&quiet->before, SIGXFSZ) && sigpending(&waiting) == 0 && sigismember(&waiting, SIGXFSZ);
}

static void quiet_end(const struct quiet *quiet, bool refused)
{
    const struct timespec now = {0};
    const int error = errno;
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, SIGXFSZ);
    if (refused && error == EFBIG && !quiet->waits)
        sigtimedwait(&only, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
    errno = error;
}

ssize_t own_file_write(const struct own_file *file, const void *bytes, size_t size, off_t at)
{
    const int number = own_file_number(file);
    struct quiet quiet;
    if (number < 0)
        return -1;
    quiet_begin(&quiet);
    outside_begin();
    const ssize_t n = at == OWN_FILE_END ? write(number, bytes, size) : pwrite(number, bytes, size, at);
    outside_end();
    quiet_end(&quiet, n < 0);
    return n;
}

struct own_range {
    const struct own_file *file;
    const char *bytes;
};

static ssize_t write_part(const void *argument, size_t done, size_t left)
{
    const struct own_range *range = argument;
    return own_file_write(range->file, range->bytes + done, left, OWN_FILE_END);
}

bool own_file_write_all(const struct own_file *file, const void *bytes, size_t size)
{
    return transfer_all(write_part, &(struct own_range){file, bytes}, size);
}

bool own_file_resize(const struct own_file *file, off_t size)
{
    const int number = own_file_number(file);
    struct quiet quiet;
    if (number < 0)
        return false;
    quiet_begin(&quiet);
    const bool done = ftruncate(number, size) == 0;
    quiet_end(&quiet, !done);
    return done;
}

bool own_file_close(struct own_file *file)
{
    const int number = own_file_number(file);
    *file = NO_OWN_FILE;
    return number >= 0 && close(number) == 0;
}

bool own_file_any_lost(void)
{
    return atomic_load_explicit(&lost, memory_order_relaxed);
}

void own_file_reset(void)
{
    atomic_store(&lost, false);
}
