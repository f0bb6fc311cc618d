/* In place of Python for the simulated driver: has a process that has imported the server fork it, see warm_start.py.
 * Anything else, and a server that cannot be had so, is left to Python. */
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* warm_start.py defines both; these are for tools that parse this file alone. */
#ifndef WARM_SOCKET
#define WARM_SOCKET ""
#define PYTHON ""
#endif

enum { ARGUMENTS = 7, MODULE = 5, SETUP = 6, DESCRIPTORS = 3 };

/* stderr, the socket and the memory; see tui_probe/simgpu/protocol.py. */
static const int PASSED[DESCRIPTORS] = {2, 3, 4};

static int forked(char *setup)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = WARM_SOCKET};
    int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0 || connect(connection, (struct sockaddr *)&address, sizeof address))
        return 0;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof PASSED)];
    } control = {.bytes = {0}};
    struct iovec text = {.iov_base = setup, .iov_len = strlen(setup)};
    struct msghdr message = {.msg_iov = &text,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof PASSED);
    memcpy(CMSG_DATA(head), PASSED, sizeof PASSED);
    char answer;
    return sendmsg(connection, &message, MSG_NOSIGNAL) > 0 && read(connection, &answer, 1) == 1;
}

int main(int count, char **arguments)
{
    if (count == ARGUMENTS && !strcmp(arguments[MODULE], "tui_probe.simgpu") && forked(arguments[SETUP]))
        return 0;
    arguments[0] = (char[]){PYTHON};
    execv(PYTHON, arguments);
    return 127;
}
