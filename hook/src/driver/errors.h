/* Errors of the driver that mean more than a failed call. */
#ifndef TUI_PROBE_ERRORS_H
#define TUI_PROBE_ERRORS_H

#include <stdbool.h>

#include "cuda_abi.h"

/* A kernel did something wrong. Destroyed contexts and assertions of the program's are no such errors. */
bool error_is_fault(CUresult error);

/* An error that is the context's, no matter who launches what in it. */
bool error_is_sticky(CUresult error);

#endif
