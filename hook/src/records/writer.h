/* The thread that writes result files, so that slow disks do not hold up the chunks on the device. */
#ifndef TUI_PROBE_WRITER_H
#define TUI_PROBE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct piece;

bool writer_start(void);

/* Memory for SIZE bytes that are to be written; NULL if that many more may not wait. */
uint8_t *writer_room(size_t size);

/* They are not written after all. Accepts NULL. */
void writer_give_back(uint8_t *bytes, size_t size);

/* Hands over the records of a chunk, SIZE bytes of writer_room, and its pieces; both are freed once they are
 * written. */
bool writer_submit(uint8_t *bytes, size_t size, struct piece *pieces, size_t n);

/* Hand-overs so far, and whether the first N of them are written. */
uint64_t writer_submitted(void);
bool writer_finished(uint64_t n);

void writer_reset(void);

#endif
