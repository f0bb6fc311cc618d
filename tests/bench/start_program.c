/* Loads kernels, waits some milliseconds (the second argument), and launches each once. Each has as many accesses to
 * memory as the third argument says, in steps that depend on one another. The fourth is how often all are launched again,
 * every tenth of a second. Prints the milliseconds at which it did what, by CLOCK_MONOTONIC: "main", "context" when there
 * is one, "first" after the first launch, "launched" after each had one, "end". */
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

enum { HEAD_BYTES = 1 << 10, ACCESS_BYTES = 1 << 9 };

static char *write_kernel(char *at, int number, int accesses)
{
    at += sprintf(at,
                  ".visible .entry store%d__8(.param .u64 to)\n{\n.reg .pred %%p<2>;\n.reg .b32 %%r<5>;\n"
                  ".reg .b64 %%rd<4>;\nld.param.u64 %%rd1, [to];\nld.global.u32 %%r1, [%%rd1];\n"
                  "add.u32 %%r2, %%r1, %d;\n",
                  number, number);
    for (int i = 1; i < accesses; i++)
        at += sprintf(at,
                      "and.b32 %%r3, %%r2, 1020;\ncvt.u64.u32 %%rd2, %%r3;\nadd.u64 %%rd3, %%rd1, %%rd2;\n"
                      "setp.eq.u32 %%p1, %%r2, %d;\n@%%p1 bra L%d_%d;\nld.global.u32 %%r4, [%%rd3];\n"
                      "xor.b32 %%r2, %%r4, %%r2;\nst.global.u32 [%%rd3], %%r2;\nL%d_%d:\nadd.u32 %%r2, %%r2, %d;\n",
                      1000000 + i, number, i, number, i, i);
    return at + sprintf(at, "st.global.u32 [%%rd1], %%r2;\nret;\n}\n");
}

int main(int n_arguments, char **arguments)
{
    tell("main");
    int n = n_arguments > 1 ? atoi(arguments[1]) : 1, accesses = n_arguments > 3 ? atoi(arguments[3]) : 1;
    const int again = n_arguments > 4 ? atoi(arguments[4]) : 0;
    char name[20];
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context, *module, *function, *buffer;
    if (!driver || n < 1 || n > 100) {
        fprintf(stderr, "%s\n", driver ? "usage: start_program [KERNELS up to 100] [MILLISECONDS] [ACCESSES] [AGAIN]" : dlerror());
        return 1;
    }
    CALL("cuInit", 0);
    CALL("cuDevicePrimaryCtxRetain", &context, 0);
    CALL("cuCtxSetCurrent", context);
    CALL("cuMemAlloc_v2", &buffer, (size_t)4096);
    tell("context");
    char *ptx = malloc(HEAD_BYTES + (size_t)n * (HEAD_BYTES + (size_t)accesses * ACCESS_BYTES));
    char *at = ptx + sprintf(ptx, ".version 7.0\n.target sm_70\n.address_size 64\n");
    for (int i = 0; i < n; i++)
        at = write_kernel(at, i, accesses);
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
    for (int i = 0; i < again * n; i++) {
        void *parameters[] = {&buffer};
        if (i % n == 0)
            usleep(100000);
        sprintf(name, "store%d__8", i % n);
        CALL("cuModuleGetFunction", &function, module, name);
        CALL("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
    }
    CALL("cuCtxSynchronize");
    tell("end");
    return 0;
}
