/* The trace directory of this process. */
#ifndef TUI_PROBE_TRACE_DIR_H
#define TUI_PROBE_TRACE_DIR_H

#include <stdbool.h>
#include <stdint.h>

/* Makes it, with event.log begun and the probe file copied. False if it cannot be made. */
bool trace_dir_create(void);

/* Its absolute path, and a descriptor to open files in it. */
const char *trace_dir_path(void);
int trace_dir_fd(void);

/* Makes kernel/<index>_<sha1 of name>. Returns its absolute path, to be freed, or NULL with errno. */
char *trace_dir_kernel(uint32_t index, const char *name);

/* Logs what kind of device the current context is on, once per device. */
void trace_dir_note_device(void);

void trace_dir_reset(void);

#endif
