/* The program gets no memory while probes hold some: they give it back, and the call is made again. */
#ifndef TUI_PROBE_MEMORY_PRESSURE_H
#define TUI_PROBE_MEMORY_PRESSURE_H

#include <stdbool.h>

/* Frees all that probes hold and can do without. Launches take no memory until memory_relieve. False: nothing of this process
 * is probed, and there is nothing to free. */
bool memory_press(void);
void memory_relieve(void);

/* CALL, which yields a CUresult, made again if it lacked memory. */
#define WITH_MEMORY(result, call)                               \
    CUresult result = call;                                     \
    if (result == CUDA_ERROR_OUT_OF_MEMORY && memory_press()) { \
        result = call;                                          \
        memory_relieve();                                       \
    }

#endif
