#include <stdio.h>

int device_count(void);

int main(void)
{
    return printf("%d devices\n", device_count()) < 0;
}
