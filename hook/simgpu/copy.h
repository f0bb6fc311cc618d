/* Copies, fills and events as work that a graph holds. The driver's lock is not held. */
#ifndef TUI_PROBE_SIMGPU_COPY_H
#define TUI_PROBE_SIMGPU_COPY_H

#include "driver.h"

/* Rows of slices of bytes; NOT_SUPPORTED for arrays. */
CUresult copy_boxes(const CUmemcpy3D *plan);

CUresult fill_rows(CUdeviceptr address, size_t pitch, uint32_t value, size_t value_bytes, size_t count, size_t rows);

CUresult event_record(CUevent event);

#endif
