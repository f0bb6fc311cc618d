/* A program that ends with _exit(7) in a handler of SIGALRM, which interrupts a launch ("launch"), malloc and free
 * ("malloc"), or a launch while another thread launches, too ("threads"), after 200 launches whose records are not saved
 * yet. What was interrupted holds locks, and never continues.
 *
 * It ends with its status immediately, as it does without the tool; the records of launches that were done are saved or counted
 * as dropped. */
#include <sys/time.h>

#include "gpu.h"

static void leave(int unused)
{
    (void)unused;
    _exit(7);
}

static void *launch_without_end(void *kernel)
{
    for (;;)
        launch(kernel, 1);
    return NULL;
}

static void allocate_without_end(void)
{
    enum { KEPT = 64 };
    static void *kept[KEPT];
    for (unsigned i = 0;; i++) {
        free(kept[i % KEPT]);
        kept[i % KEPT] = malloc(2000 + i * 7919 % 60000);
    }
}

int main(int argc, char **argv)
{
    pthread_t thread;
    must(argc == 3, "usage: launch|malloc|threads MICROSECONDS");
    const struct itimerval soon = {.it_value = {.tv_usec = atol(argv[2])}};
    void *kernel = kernel_named("again");
    launch(kernel, 200);
    signal(SIGALRM, leave);
    if (strcmp(argv[1], "threads") == 0)
        pthread_create(&thread, NULL, launch_without_end, kernel);
    setitimer(ITIMER_REAL, &soon, NULL);
    if (strcmp(argv[1], "malloc") == 0)
        allocate_without_end();
    launch_without_end(kernel);
}
