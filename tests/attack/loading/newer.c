/* Uses what is new in newer_driver.c: linked, or looked up by its name. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#ifdef LINKED
int cuNewerThanAll(int *answer);
extern int cuNewerVariable;
#endif

int main(void)
{
    int answer = 0;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned) = (int (*)(unsigned))(uintptr_t)dlsym(driver, "cuInit");
#ifdef LINKED
    const int failed = cuNewerThanAll(&answer), variable = cuNewerVariable;
#else
    int (*newer)(int *) = (int (*)(int *))(uintptr_t)dlsym(driver, "cuNewerThanAll");
    const int failed = newer(&answer), variable = *(int *)dlsym(driver, "cuNewerVariable");
#endif
    return printf("%d %d %d %d\n", init(0), failed, answer, variable) < 0;
}
