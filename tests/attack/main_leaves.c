/* A program whose first thread leaves with pthread_exit while another continues for 300 ms, launches, and begins a third one
 * that ends last.
 *
 * It ends with status 0 when that one does, with all it wrote, and its records are saved. */
#include "gpu.h"

static void *last(void *kernel)
{
    launch(kernel, 10);
    usleep(200000);
    puts("done");
    return NULL;
}

static void *go_on(void *kernel)
{
    pthread_t thread;
    launch(kernel, 10);
    usleep(300000);
    pthread_create(&thread, NULL, last, kernel);
    pthread_detach(thread);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    void *kernel = kernel_named("again");
    launch(kernel, 10);
    pthread_create(&thread, NULL, go_on, kernel);
    pthread_detach(thread);
    pthread_exit(NULL);
}
