/* Texts that say why something was not probed. A record may refer to one at any later time, so they
 * are never freed; equal texts are kept once. */
#ifndef TUI_PROBE_REASONS_H
#define TUI_PROBE_REASONS_H

#include "cuda_abi.h"

const char *reason_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "CUDA_ERROR_…", or "error N" where the driver has no name for it. */
const char *reason_error_name(CUresult result);

#endif
