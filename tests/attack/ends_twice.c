/* A program that has 200 records left to write when it ends, by exit(0) ("exit") or _exit(0) ("_exit"), while another
 * thread ends it, too: with _exit(0) MICROSECONDS later if that is not 0. Else a signal may come from outside.
 *
 * What is not saved is counted, and said: no end cuts the other one's flush short. */
#include "gpu.h"

static useconds_t later;

static void *end_too(void *unused)
{
    (void)unused;
    usleep(later);
    _exit(0);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    must(argc == 3, "usage: exit|_exit MICROSECONDS");
    launch(kernel_named("again"), 200);
    puts("up");
    fflush(stdout);
    later = (useconds_t)atol(argv[2]);
    if (later)
        pthread_create(&thread, NULL, end_too, NULL);
    if (strcmp(argv[1], "exit") == 0)
        exit(0);
    _exit(0);
}
