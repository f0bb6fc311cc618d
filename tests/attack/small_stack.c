/* A program whose threads have the smallest stack that there may be, and measure how much of it is used below a call: each
 * step runs on a thread of its own, whose stack is painted before. Prints "STEP BYTES" for each.
 *
 * Steps that are calls of the driver use at most 4 KiB more than the driver does. */
#define _GNU_SOURCE
#include "gpu.h"

int cuModuleUnload(void *module);

enum { STACK_BYTES = 64 << 10, PAINT = 0xa5, KEPT = 512 };

struct step {
    void (*work)(void);
    size_t used;
};

static void *kernels[3], *module;

/* Paints what is below the caller's frame, does the work, and looks how deep the paint is gone. */
static __attribute__((noinline)) void *measure(void *argument)
{
    struct step *step = argument;
    pthread_attr_t attributes;
    void *lowest;
    size_t size;
    must(cuCtxSetCurrent(context) == 0, "no context");
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &lowest, &size);
    pthread_attr_destroy(&attributes);
    unsigned char *here = __builtin_frame_address(0), *low = lowest;
    for (unsigned char *at = low; at < here - KEPT; at++)
        *(volatile unsigned char *)at = PAINT;
    step->work();
    while (*low == PAINT)
        low++;
    step->used = (size_t)(here - KEPT - low);
    return NULL;
}

static void run(const char *name, void (*work)(void))
{
    struct step step = {work, 0};
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    must(pthread_create(&thread, &attributes, measure, &step) == 0, "no thread");
    pthread_join(thread, NULL);
    printf("%s %zu\n", name, step.used);
}

static void launch_first(void)
{
    cuLaunchKernel(kernels[0], 2, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL);
}

/* More than the ring of launches holds: some wait for room, and write lines meanwhile. */
static void launch_many(void)
{
    for (int i = 0; i < 40000; i++)
        cuLaunchKernel(kernels[i % 2], 2, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL);
}

static void launch_refused(void)
{
    cuLaunchKernel(kernels[2], 2, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL);
}

static void load(void)
{
    must(!cuModuleLoadData(&module, ".version 8.0\n") && !cuModuleGetFunction(&kernels[2], module, "other"),
         "no module");
}

static void unload(void)
{
    cuModuleUnload(module);
}

static void leave(void)
{
    if (fork() == 0)
        _exit(0);
}

int main(void)
{
    kernels[0] = kernel_named("one");
    kernels[1] = kernel_named("two");
    run("first", launch_first);
    run("load", load);
    run("other", launch_refused);
    run("many", launch_many);
    run("unload", unload);
    run("fork", leave);
    return 0;
}
