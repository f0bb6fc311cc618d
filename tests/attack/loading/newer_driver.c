/* A driver with a function and a variable that no driver of today has. */
int cuInit(unsigned flags)
{
    return (int)flags;
}

int cuDriverGetVersion(int *version)
{
    return *version = 99000, 0;
}

int cuNewerThanAll(int *answer)
{
    return *answer = 42, cuInit(0);
}

int cuNewerVariable = 43;
