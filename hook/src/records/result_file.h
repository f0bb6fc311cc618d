/* The bytes of a result file: its header, the records of each map, and what is said of them at its end. */
#ifndef TUI_PROBE_RESULT_FILE_H
#define TUI_PROBE_RESULT_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct kernel_probe;
struct own_file;
struct piece;
struct reason;
struct result_source;

/* Bytes in front of the records. */
uint64_t result_file_head(const struct kernel_probe *probe);

/* Writes FILE, and sets SIZE. False, with errno, if it cannot be written; errno is 0 if that is the driver's fault, or
 * if the disk is nearly full, which sets STOPPED. */
bool result_file_write(const struct own_file *file, const struct piece *piece, const struct result_source *source,
                       _Atomic(const struct reason *) *stopped, uint64_t *size);

/* Lets dynamic maps grow by what the launch wanted to keep, and leaves no file. */
void result_file_learn(const struct piece *piece, const struct result_source *source);

#endif
