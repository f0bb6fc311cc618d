#include "server_process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "given.h"
#include "journal.h"
#include "machine.h"
#include "protocol.h"
#include "report.h"
#include "server_environment.h"

const char *server_python(void)
{
    const char *python = given("TUI_PROBE_SIM_PYTHON");
    return python && *python ? python : "python3";
}

/* The server keeps the program's stderr for its own failures, and nothing else of the program's: no input, no output,
 * no signals of its terminal. */
static int prepare(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes, int socket, int memory)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    bool has_stderr = fcntl(STDERR_FILENO, F_GETFD) >= 0;
    int error = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error && !has_stderr) {
        error = posix_spawn_file_actions_addopen(actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    }
    if (!error)
        error = posix_spawn_file_actions_adddup2(actions, STDERR_FILENO, STDOUT_FILENO);
    if (!error)
        error = posix_spawn_file_actions_adddup2(actions, socket, SOCKET_DESCRIPTOR);
    if (!error)
        error = posix_spawn_file_actions_adddup2(actions, memory, MEMORY_DESCRIPTOR);
    if (!error)
        error = posix_spawnattr_setsigmask(attributes, &none);
    if (!error)
        error = posix_spawnattr_setsigdefault(attributes, &all);
    short flags = POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    return error ? error : posix_spawnattr_setflags(attributes, flags);
}

static int spawn(const struct server_setup *setup, int socket, int memory, pid_t *process)
{
    char machine[256];
    snprintf(machine, sizeof machine,
             "memory_address=%" PRIu64 ",memory_bytes=%" PRIu64 ",sm_count=%u,clock_khz=%d,max_threads_per_sm=%d,"
             "max_blocks_per_sm=%d,shared_bytes_per_sm=%d,compute_capability=%d,checked=%d",
             setup->memory_address, setup->memory_bytes, setup->sm_count, CLOCK_KHZ, SM_MAX_THREADS, SM_MAX_BLOCKS,
             setup->generation->sm_shared_bytes, setup->generation->major * 10 + setup->generation->minor,
             journal_is_on());
    /* -P: a file of the program's that has the name of a Python module is not taken for it. */
    const char *arguments[] = {server_python(), "-P", "-W", "ignore", "-m", "tui_probe.simgpu", machine, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char **environment = server_environment();
    if (!environment)
        return ENOMEM;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    int error = prepare(&actions, &attributes, socket, memory);
    if (!error)
        error = posix_spawnp(process, arguments[0], &actions, &attributes, (char **)arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    server_environment_free(environment);
    return error;
}

/* The process that was started forks the server and ends immediately. */
static bool started(pid_t process)
{
    int status = 0;
    pid_t waited;
    do
        waited = waitpid(process, &status, 0);
    while (waited < 0 && errno == EINTR);
    if (waited < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
        return true; /* not waitable: SIGCHLD is ignored */
    report(
        "its server did not start: `%s -P -m tui_probe.simgpu` ended immediately. Set TUI_PROBE_SIM_PYTHON to a Python "
        "(3.11 or newer) in which tui-probe is installed",
        server_python());
    return false;
}

/* A duplicate above the descriptors that the server expects, so that none of them is overwritten before it is
 * copied. */
static int move_up(int descriptor)
{
    return fcntl(descriptor, F_DUPFD_CLOEXEC, MEMORY_DESCRIPTOR + 1);
}

int server_spawn(const struct server_setup *setup)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        report("no socket for its server: %s", strerror(errno));
        return -1;
    }
    int socket = move_up(ends[1]), memory = move_up(setup->memory_file);
    pid_t process = 0;
    int error = socket < 0 || memory < 0 ? errno : spawn(setup, socket, memory, &process);
    close(ends[1]);
    if (socket >= 0)
        close(socket);
    if (memory >= 0)
        close(memory);
    if (error)
        report("cannot start %s: %s. Set TUI_PROBE_SIM_PYTHON to a Python in which tui-probe is installed",
               server_python(), strerror(error));
    if (!error && started(process))
        return ends[0];
    close(ends[0]);
    return -1;
}
