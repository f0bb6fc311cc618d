#define _GNU_SOURCE
#include "trace_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "device.h"
#include "event_log.h"
#include "log_file.h"
#include "own_file.h"
#include "real.h"
#include "reservations.h"
#include "run_notes.h"
#include "secrets.h"
#include "settings.h"
#include "sha1.h"

enum { HEADER_LIMIT = 1 << 17, HEADER_REST = 1024, RANK_LINE_SIZE = 80 };

static char directory[PATH_MAX];
static struct own_file folder = {.number = -1};

/* "Nov21_024500", as the launcher writes it; month names do not follow the program's locale. */
static void stamp_of(uint64_t time, char *stamp, size_t size)
{
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t)(time / 1000000000u);
    struct tm local;
    localtime_r(&seconds, &local);
    snprintf(stamp, size, "%s%02d_%02d%02d%02d", months[local.tm_mon], local.tm_mday, local.tm_hour, local.tm_min,
             local.tm_sec);
}

/* Takes the directory, whose name is there: the process that makes the folder "kernel" in it owns it. The launcher has made
 * an empty one for its own child; other processes may have the same second and number. */
static bool take_directory(void)
{
    if (!own_folder_create(AT_FDCWD, directory, 0700) && errno != EEXIST)
        return false;
    if (!own_file_take(&folder, open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)))
        return false;
    if (own_folder_create(trace_dir_fd(), "kernel", 0777))
        return true;
    const int error = errno;
    own_file_close(&folder);
    errno = error;
    return false;
}

/* A process that replaced itself by another program finds the name that the launcher chose taken: then by its own time.
 * Where others have that, too, as process ids are used again and containers number from 1, a number follows. */
static bool make_directory(void)
{
    char stamp[32];
    stamp_of(clock_zero(), stamp, sizeof stamp);
    for (unsigned n = settings.stamp ? 0 : 1;; n++) {
        char number[16] = "";
        if (n > 1)
            snprintf(number, sizeof number, "_%u", n);
        const char *chosen = n == 0 ? settings.stamp : stamp;
        int length =
            snprintf(directory, sizeof directory, "%s/%s_%d%s", settings.trace_root, chosen, (int)getpid(), number);
        if (length < 0 || (size_t)length >= sizeof directory) {
            errno = ENAMETOOLONG;
            return false;
        }
        if (take_directory())
            return true;
        if (errno != EEXIST || n == UINT_MAX)
            return false;
    }
}

static void copy_file(const char *path, const char *name)
{
    char buffer[1 << 14];
    ssize_t n;
    struct own_file from, to;
    if (!path || !own_file_take(&from, open(path, O_RDONLY | O_CLOEXEC)))
        return;
    own_file_create(&to, trace_dir_fd(), name, 0);
    while (to.number >= 0 && (n = read(own_file_number(&from), buffer, sizeof buffer)) > 0)
        if (!own_file_write_all(&to, buffer, (size_t)n))
            break;
    own_file_close(&to);
    own_file_close(&from);
}

/* The first one, and all of several by their names. */
static void copy_probes(void)
{
    copy_file(settings.probe, "probe.toml");
    if (!settings.probe_folder || settings.n_probes < 2 || !own_folder_create(trace_dir_fd(), "probes", 0777))
        return;
    for (size_t i = 0; i < settings.n_probes; i++) {
        char from[PATH_MAX], to[NAME_MAX];
        int length = snprintf(from, sizeof from, "%s/%s.toml", settings.probe_folder, settings.probes[i].name);
        if (length < 0 || (size_t)length >= sizeof from)
            continue;
        snprintf(to, sizeof to, "probes/%.200s.toml", settings.probes[i].name);
        copy_file(from, to);
    }
}

/* The command line with blanks between its words, without secrets if they are not to be kept; returns its length. */
static size_t command_line(char *text, char *spare, size_t size)
{
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = file < 0 ? -1 : read(file, text, size - 1);
    if (file >= 0)
        close(file);
    size_t length = n > 0 ? (size_t)n : 0;
    while (length && text[length - 1] == '\0')
        length--;
    if (!settings.keep_secrets) {
        memcpy(spare, text, length);
        length = secrets_masked(text, size, spare, length);
    }
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\0' || text[i] == '\n')
            text[i] = ' ';
    text[length] = '\0';
    return length;
}

/* The number in a variable of the environment; -1 if it is not set or not a number from 0. */
static long number_in(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    const long number = text ? strtol(text, &end, 10) : -1;
    return text && *text && !*end ? number : -1;
}

/* The process's place among those of a parallel program, by the variables of its launcher; "" without any. A rank
 * whose program has no known size is written "of 0". */
static void rank_line(char *line, size_t size)
{
    static const char *const NAMES[][2] = {{"RANK", "WORLD_SIZE"},
                                           {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"SLURM_PROCID", "SLURM_NTASKS"}};
    long rank = -1, ranks = 0;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES && !ranks; i++) {
        const long number = number_in(NAMES[i][0]), n = number_in(NAMES[i][1]);
        if (number >= 0 && n > number) {
            rank = number;
            ranks = n;
        } else if (rank < 0 && !getenv(NAMES[i][1]))
            rank = number;
    }
    line[0] = '\0';
    if (rank >= 0)
        snprintf(line, size, "[init] rank %ld of %ld\n", rank, ranks);
}

static bool open_log(void)
{
    char path[PATH_MAX + 16];
    char *command = malloc(HEADER_LIMIT);
    char *header = malloc(HEADER_LIMIT + HEADER_REST);
    bool opened = false;
    if (command && header) {
        size_t length = command_line(command, header, HEADER_LIMIT);
        snprintf(header, HEADER_LIMIT + HEADER_REST,
                 "[init] pid %d\n[init] cmd %zu %s\n[init] dl %p\n[init] epoch %llu\n", (int)getpid(), length, command,
                 real_handle(), (unsigned long long)clock_zero());
        snprintf(path, sizeof path, "%s/event.log", directory);
        char device[DEVICE_LINE_SIZE];
        if (device_describe(device, sizeof device))
            strcat(header, device);
        char rank[RANK_LINE_SIZE];
        rank_line(rank, sizeof rank);
        strcat(header, rank);
        strcat(header, "[init] success\n");
        opened = log_file_open(path, header);
    }
    free(command);
    free(header);
    return opened;
}

static bool create(void)
{
    if (!make_directory() || !own_folder_create(trace_dir_fd(), "result", 0777))
        return false;
    copy_probes();
    budget_count_folder(&(struct budget_folder){.path = directory});
    return open_log();
}

bool trace_dir_create(void)
{
    const bool created = create();
    if (created)
        run_note("trace", strrchr(directory, '/') + 1);
    else
        run_note("no-trace", strerror(errno));
    return created;
}

const char *trace_dir_path(void)
{
    return directory;
}

int trace_dir_fd(void)
{
    return own_file_number(&folder);
}

char *trace_dir_kernel(uint32_t index, const char *name)
{
    char digest[SHA1_HEX_SIZE], *path;
    sha1_hex(name, strlen(name), digest);
    if (asprintf(&path, "%s/kernel/%u_%s", directory, index, digest) < 0)
        return NULL;
    event_log("[probe] rename %s %u_%s\n", name, index, digest);
    if (!own_folder_create(AT_FDCWD, path, 0700)) {
        int error = errno;
        free(path);
        errno = error; /* which says why to the caller */
        return NULL;
    }
    event_log("[probe] mkdir %s\n", path);
    return path;
}

void trace_dir_note_device(void)
{
    char line[DEVICE_LINE_SIZE];
    if (device_describe(line, sizeof line))
        event_log("%s", line);
}

void trace_dir_reset(void)
{
    own_file_close(&folder);
    device_reset();
}
