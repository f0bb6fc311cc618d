/* A program that closes all descriptors but 0 to 2, as daemons do, between two launches, and opens its own: an ordinary
 * file, and an end of a pair of sockets, under each number that was open before ("over"), or as the system numbers them
 * ("next").
 *
 * Its file must hold what it wrote and nothing else, and no byte that was sent to its socket may be missing. */
#include <errno.h>
#include <sys/stat.h>

#include "gpu.h"

enum { MOST = 8192, FILES = 64 };

static char was_open[MOST]; /* 1: a file or folder, 2: a socket */

static void close_all(void)
{
    struct stat status;
    for (int n = 3; n < MOST; n++)
        if (fstat(n, &status) == 0) {
            was_open[n] = S_ISSOCK(status.st_mode) ? 2 : 1;
            close(n);
        }
}

int main(int argc, char **argv)
{
    const int over = argc > 2 && strcmp(argv[1], "over") == 0;
    char text[16] = "", rest[16];
    int pair[2], mine;
    must(argc == 3, "usage: over|next FILE");
    launch(kernel_named("first"), 20);
    usleep(600000); /* what was launched is saved by then, on a busy machine too */
    close_all();
    mine = open(argv[2], O_RDWR | O_CREAT | O_EXCL | O_APPEND, 0600);
    must(mine >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "no file");
    for (int n = 3; n < MOST && over; n++)
        if (was_open[n] && n != mine && n != pair[0] && n != pair[1])
            must(dup2(was_open[n] == 2 ? pair[0] : mine, n) == n, "no number");
    for (int i = 0; i < FILES && !over; i++)
        must(dup(i % 2 ? pair[0] : mine) >= 0, "no number");
    must(write(mine, "mine", 4) == 4 && write(pair[1], "mine", 4) == 4, "no writing");
    launch(kernel_named("first"), 20);
    launch(kernel_named("second"), 20); /* the engine is asked for it */
    usleep(300000);
    must(pread(mine, text, sizeof text, 0) == 4 && memcmp(text, "mine", 4) == 0, "the file is not what was written");
    must(recv(pair[0], text, sizeof text, MSG_DONTWAIT) == 4, "bytes are missing");
    must(recv(pair[1], rest, sizeof rest, MSG_DONTWAIT) < 0 && errno == EAGAIN, "someone wrote into the socket");
    must(lseek(mine, 0, SEEK_END) == 4 && fcntl(mine, F_GETFD) >= 0 && fcntl(pair[0], F_GETFD) >= 0, "it was closed");
    puts("done");
    return 0;
}
