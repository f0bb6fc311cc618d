/* A program that dies with 200 records left to write: by abort ("abort"), by a null pointer in main ("fault") or in another
 * thread ("thread"), by an overflow of its stack ("stack"), or by signal N that it sends to itself ("N"), as without the
 * tool; or that gives SIGSEGV a handler of its own after its first launch ("handler"), which ends it with 3.
 *
 * It dies of the same signal, soon, and its records are saved or counted. */
#include "gpu.h"

static volatile int *nowhere;

static void *fault(void *unused)
{
    *nowhere = 1;
    return unused;
}

static int deeper(int n)
{
    volatile char room[1 << 16];
    room[0] = (char)n;
    return n < 0 ? 0 : deeper(n + 1) + room[0]; /* a compiler must not see that it never ends */
}

static void leave(int unused)
{
    (void)unused;
    _exit(3);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    const struct rlimit none = {0, 0};
    must(argc == 2 && setrlimit(RLIMIT_CORE, &none) == 0, "usage: abort|fault|thread|stack|handler|N");
    launch(kernel_named("again"), 200);
    if (strcmp(argv[1], "abort") == 0)
        abort();
    if (strcmp(argv[1], "stack") == 0)
        return deeper(0);
    if (strcmp(argv[1], "handler") == 0)
        signal(SIGSEGV, leave);
    if (strcmp(argv[1], "thread") == 0) {
        pthread_create(&thread, NULL, fault, NULL);
        pthread_join(thread, NULL);
    }
    if (atoi(argv[1]))
        raise(atoi(argv[1]));
    fault(NULL);
    return 0;
}
