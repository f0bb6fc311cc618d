/* A program that may only write small files (ulimit -f), which launches from two threads and handles no signal.
 *
 * Without the tool it writes nothing and ends with 0. SIGXFSZ of someone else's write must not end it. */
#include "gpu.h"

static void *launch_in_thread(void *kernel)
{
    launch(kernel, 200);
    return NULL;
}

int main(void)
{
    const struct rlimit small = {.rlim_cur = 6000, .rlim_max = RLIM_INFINITY};
    pthread_t thread;
    sigset_t pending;
    must(setrlimit(RLIMIT_FSIZE, &small) == 0 && signal(SIGXFSZ, SIG_DFL) != SIG_ERR, "no limit");
    void *kernel = kernel_named("small");
    pthread_create(&thread, NULL, launch_in_thread, kernel);
    launch(kernel, 200);
    pthread_join(thread, NULL);
    launch(kernel_named("another"), 5);
    usleep(200000);
    must(sigpending(&pending) == 0 && !sigismember(&pending, SIGXFSZ), "a signal is left behind");
    puts("done");
    return 0;
}
