/* The driver's own table of a kernel's parameters. */
#ifndef TUI_PROBE_PARAMETERS_H
#define TUI_PROBE_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>

#include "cuda_abi.h"
#include "kernel.h"

/* The place of each parameter: of FUNCTION, or of a library's KERNEL if that is not NULL. LIST is to be freed. False if
 * the driver does not tell, or there is no memory. */
bool parameters_read(CUfunction function, CUkernel kernel, struct parameter **list, size_t *n);

/* The reason why the parameters of the probed form of a kernel are not those of the kernel and the ones that each
 * launch adds; NULL if they are, or the driver does not tell. */
const struct reason *parameters_agree(const struct kernel_probe *probe, const struct variant *variant);

#endif
