/* Loads kernels, waits some milliseconds (the second argument), and launches each once. Prints the milliseconds at which
 * it did what, by CLOCK_MONOTONIC: "main", "context" when there is one, "first" after the first launch, "launched" after
 * the last, "end". */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CALL(name, ...)                                 \
    do {                                                \
        int (*call)() = (int (*)())dlsym(driver, name); \
        int result = call ? call(__VA_ARGS__) : -1;     \
        if (result) {                                   \
            fprintf(stderr, "%s: %d\n", name, result);  \
            exit(1);                                    \
        }                                               \
    } while (0)

static void tell(const char *what)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%s %.3f\n", what, now.tv_sec * 1e3 + now.tv_nsec / 1e6);
}

int main(int n_arguments, char **arguments)
{
    tell("main");
    int n = n_arguments > 1 ? atoi(arguments[1]) : 1;
    char ptx[1 << 16], name[20];
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context, *module, *function, *buffer;
    if (!driver || n < 1 || n > 100) {
        fprintf(stderr, "%s\n", driver ? "usage: start_program [KERNELS up to 100] [MILLISECONDS]" : dlerror());
        return 1;
    }
    CALL("cuInit", 0);
    CALL("cuDevicePrimaryCtxRetain", &context, 0);
    CALL("cuCtxSetCurrent", context);
    CALL("cuMemAlloc_v2", &buffer, (size_t)4096);
    tell("context");
    char *at = ptx + sprintf(ptx, ".version 7.0\n.target sm_70\n.address_size 64\n");
    for (int i = 0; i < n; i++)
        at += sprintf(at,
                      ".visible .entry store%d__8(.param .u64 to)\n{\n.reg .b32 %%r<3>;\n.reg .b64 %%rd<3>;\n"
                      "ld.param.u64 %%rd1, [to];\nld.global.u32 %%r1, [%%rd1];\nadd.u32 %%r2, %%r1, %d;\n"
                      "st.global.u32 [%%rd1], %%r2;\nret;\n}\n",
                      i, i);
    CALL("cuModuleLoadData", &module, ptx);
    if (n_arguments > 2)
        usleep(1000 * (useconds_t)atoi(arguments[2]));
    for (int i = 0; i < n; i++) {
        void *parameters[] = {&buffer};
        sprintf(name, "store%d__8", i);
        CALL("cuModuleGetFunction", &function, module, name);
        CALL("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
        if (i == 0)
            tell("first");
    }
    tell("launched");
    CALL("cuCtxSynchronize");
    tell("end");
    return 0;
}
