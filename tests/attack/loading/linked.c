/* Launches one kernel through functions that it is linked with, and prints "launched". */
#include "../gpu.h"

int main(void)
{
    launch(kernel_named("again"), 1);
    return puts("launched") < 0;
}
