#include "jit_options.h"

#include <stdint.h>
#include <string.h>

#include "cuda_abi.h"

void give_jit_log(unsigned count, const int *options, void **values, const char *error)
{
    char *buffer = NULL;
    size_t bytes = 0;
    if (!options || !values)
        return;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == JIT_ERROR_LOG_BUFFER)
            buffer = values[i];
        if (options[i] == JIT_ERROR_LOG_BYTES)
            bytes = (uint32_t)(uintptr_t)values[i];
    }
    size_t given = error && buffer && bytes ? strnlen(error, bytes - 1) : 0;
    if (buffer && bytes) {
        memcpy(buffer, error ? error : "", given);
        buffer[given] = '\0';
    }
    /* The driver writes the number of bytes it gave in place of the size of the buffer. */
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == JIT_ERROR_LOG_BYTES)
            values[i] = (void *)(uintptr_t)given;
        if (options[i] == JIT_INFO_LOG_BYTES)
            values[i] = NULL;
    }
}
