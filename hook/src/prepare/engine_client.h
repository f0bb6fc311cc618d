/* The probe engine, a process next to the program that turns a kernel into a probed one. */
#ifndef TUI_PROBE_ENGINE_CLIENT_H
#define TUI_PROBE_ENGINE_CLIENT_H

#include <stddef.h>

#include "reasons.h"

enum engine_outcome { ENGINE_OK, ENGINE_SKIPPED, ENGINE_FAILED, ENGINE_LATER };

struct engine_answer {
    enum engine_outcome outcome;
    char text[512]; /* the file to load; "" unless ENGINE_OK */
    const struct reason *reason; /* NULL for ENGINE_OK and ENGINE_LATER */
};

/* A question with answers that are still to come. */
struct connection;

/* Asks for the kernel whose original.bin is in DIRECTORY, with each of the run's N probes (the fused one is the last),
 * so that a block of that many THREADS has its registers. Waits; several threads may ask. A missing, dead or confused
 * engine gives ENGINE_FAILED. Some answers may be ENGINE_LATER: then the connection is returned over which they come,
 * for one of the next two. */
struct connection *engine_prepare(const char *directory, const char *architecture, const char *kernel, unsigned threads,
                                  struct engine_answer *answers, size_t n);

/* Waits for those of N ANSWERS that are ENGINE_LATER, which are replaced. Frees CONNECTION. */
void engine_prepare_later(struct connection *connection, struct engine_answer *answers, size_t n);

/* Does without them. */
void engine_leave_later(struct connection *connection);

/* The same for each of N parts of the run's fused probe by itself. */
void engine_prepare_parts(const char *directory, const char *architecture, const char *kernel, unsigned threads,
                          struct engine_answer *answers, size_t n);

/* The same for probe PLACE of the run by itself, in a form that measures the blocks of a sample. */
void engine_prepare_sampled(const char *directory, const char *architecture, const char *kernel, unsigned threads,
                            size_t place, struct engine_answer *answer);

void engine_reset(void);

#endif
