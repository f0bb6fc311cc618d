/* The driver that the program would have got without us. */
#ifndef TUI_PROBE_REAL_H
#define TUI_PROBE_REAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"

/* One member per function, NULL where the driver is too old to have it. */
struct real_driver {
#define CUDA_FUNCTION(name, ...) __typeof__(name) *name;
#include "driver_functions.def"
#undef CUDA_FUNCTION
};

extern struct real_driver real_driver;
extern atomic_bool real_loaded;
void real_load(void);

/* Loads the driver on first use; all members are NULL if there is none. */
static inline const struct real_driver *real(void)
{
    if (!atomic_load_explicit(&real_loaded, memory_order_acquire))
        real_load();
    return &real_driver;
}

/* The address of any name in the driver, or NULL. */
void *real_symbol(const char *name);

/* The dlopen handle of the loaded driver, and where it is mapped; 0 before. */
void *real_handle(void);
uintptr_t real_base(void);

/* Calls FUNCTION of the driver and yields CUDA_ERROR_NOT_FOUND where the driver has none. */
#define REAL_OR_NOT_FOUND(function, ...) (real()->function ? real()->function(__VA_ARGS__) : CUDA_ERROR_NOT_FOUND)

#endif
