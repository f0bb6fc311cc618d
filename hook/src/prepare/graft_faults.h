/* Kernels whose machine code had been changed by us and was running when a context failed. Whether or not that was the
 * cause, the next runs leave them unchanged: their names are kept in the file settings.graft_faults. */
#ifndef TUI_PROBE_GRAFT_FAULTS_H
#define TUI_PROBE_GRAFT_FAULTS_H

#include "buffers.h"
#include "cuda_abi.h"
#include "reasons.h"

/* The reason why a kernel of this name is left unchanged, or NULL. */
const struct reason *graft_faults_refuse(const char *kernel);

/* The launches of CHUNK ended with an error of their context: writes down which of their kernels had a graft. */
void graft_faults_note(const struct chunk *chunk, CUresult error);

#endif
