/* The program gets no memory while probes hold some: they give it back, and the call is made again. */
#ifndef TUI_PROBE_MEMORY_PRESSURE_H
#define TUI_PROBE_MEMORY_PRESSURE_H

#include <stdbool.h>

#include "real.h"

/* Frees all that probes hold and can do without. Launches take no memory until memory_relieve. False: nothing of this
 * process is probed, and there is nothing to free. */
bool memory_press(void);
void memory_relieve(void);

/* Calls FUNCTION of the driver, and once more if it lacked memory. */
#define WITH_MEMORY(function, ...)                                   \
    __extension__({                                                  \
        CUresult result_ = REAL_OR_NOT_FOUND(function, __VA_ARGS__); \
        if (result_ == CUDA_ERROR_OUT_OF_MEMORY && memory_press()) { \
            result_ = REAL_OR_NOT_FOUND(function, __VA_ARGS__);      \
            memory_relieve();                                        \
        }                                                            \
        result_;                                                     \
    })

#endif
