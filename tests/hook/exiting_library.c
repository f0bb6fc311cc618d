/* A library that ends the program it is loaded into. */
#include <stdlib.h>

__attribute__((visibility("default"))) void leave(int status)
{
    exit(status);
}
