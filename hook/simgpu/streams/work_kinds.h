/* The kinds of work that do something: launches, copies, fills, host functions, events. */
#ifndef TUI_PROBE_SIMGPU_WORK_KINDS_H
#define TUI_PROBE_SIMGPU_WORK_KINDS_H

#include "work.h"

extern const struct work_kind kernel_work;       /* launch.c */
extern const struct work_kind copy_work;         /* copy.c */
extern const struct work_kind fill_work;         /* fill.c */
extern const struct work_kind host_work;         /* host_work.c */
extern const struct work_kind event_record_work; /* event_api.c */

#endif
