/* Wrappers of functions that can lack memory, and that nothing else is done with. */
#include "memory_pressure.h"

#define MEMORY_FUNCTION(n, name, ...) WRAPPER_##n(name, __VA_ARGS__)
#define WRAPPER_1(name, A)           \
    CUresult name(A a)               \
    {                                \
        return WITH_MEMORY(name, a); \
    }
#define WRAPPER_2(name, A, B)           \
    CUresult name(A a, B b)             \
    {                                   \
        return WITH_MEMORY(name, a, b); \
    }
#define WRAPPER_3(name, A, B, C)           \
    CUresult name(A a, B b, C c)           \
    {                                      \
        return WITH_MEMORY(name, a, b, c); \
    }
#define WRAPPER_4(name, A, B, C, D)           \
    CUresult name(A a, B b, C c, D d)         \
    {                                         \
        return WITH_MEMORY(name, a, b, c, d); \
    }
#define WRAPPER_5(name, A, B, C, D, E)           \
    CUresult name(A a, B b, C c, D d, E e)       \
    {                                            \
        return WITH_MEMORY(name, a, b, c, d, e); \
    }
#define WRAPPER_6(name, A, B, C, D, E, F)           \
    CUresult name(A a, B b, C c, D d, E e, F f)     \
    {                                               \
        return WITH_MEMORY(name, a, b, c, d, e, f); \
    }

#include "memory_functions.def"
