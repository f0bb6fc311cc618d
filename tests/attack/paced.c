/* Launches at a steady rate for a given time, loading its module anew now and then, and checks what the kernels did.
 *
 * usage: paced PTX SECONDS RATE SECONDS_PER_MODULE -> "LAUNCHES launches, right" */
#include "../gpu/programs/driver.h"
#include <unistd.h>

enum { BLOCK = 32 };

static CUfunction load_anew(CUmodule *module, const char *path)
{
    if (*module)
        CHECK(DRIVER(cuModuleUnload, CUmodule)(*module));
    *module = load(path);
    return function(*module, "shift");
}

static void wait_until(double time)
{
    const double left = time - now_seconds();
    if (left > 0)
        usleep((useconds_t)(left * 1e6));
}

int main(int n_arguments, char **arguments)
{
    if (n_arguments != 5)
        return 2;
    make_context();
    const double seconds = atof(arguments[2]), pause = 1 / atof(arguments[3]), turn = atof(arguments[4]), begin = now_seconds();
    unsigned amount = 1, count = BLOCK, launches = 0, first = 0;
    CUdeviceptr memory = allocate(BLOCK * sizeof(unsigned));
    unsigned zeros[BLOCK] = {0};
    to_device(memory, zeros, sizeof zeros);
    void *parameters[] = {&memory, &amount, &count};
    CUmodule module = NULL;
    CUfunction kernel = NULL;
    for (double loaded = 0; now_seconds() < begin + seconds; launches++) {
        if (!kernel || now_seconds() > loaded + turn) {
            synchronize();
            kernel = load_anew(&module, arguments[1]);
            loaded = now_seconds();
        }
        CHECK(launch(kernel, 1, BLOCK, NULL, parameters, NULL));
        wait_until(begin + launches * pause);
    }
    synchronize();
    to_host(&first, memory, sizeof first);
    printf("%u launches, %s\n", launches, first == launches ? "right" : "WRONG");
    return first != launches;
}
