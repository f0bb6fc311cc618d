/* The sample of blocks of a grid that are measured. */
#ifndef TUI_PROBE_SAMPLING_H
#define TUI_PROBE_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

struct reason;

enum sampling_kind { SAMPLE_ALL, SAMPLE_ONE_IN, SAMPLE_RANGE, SAMPLE_SPREAD };

/* The choice of the user. */
struct sampling {
    enum sampling_kind kind;
    uint64_t first, last; /* of a range: blocks; else LAST is how many: one in that many, or that many in all */
};

/* Blocks FIRST, FIRST + STEP, …, by their linear number, COUNT of them. */
struct sampled {
    uint64_t first, step, count;
};

/* "1/16" one block in 16; "0-131" those of a range; "64" as many, spread over the grid. False: none of these. */
bool sampling_parse(const char *text, struct sampling *sampling);

/* Those of a grid of BLOCKS. None if it has none of a range. */
struct sampled sampling_of(const struct sampling *sampling, uint64_t blocks);

/* The reason why the blocks of this grid cannot be measured, or NULL. */
const struct reason *sampling_refuses(const struct sampling *sampling, uint64_t blocks);

enum { SAMPLING_PARAMETERS = 2 };

/* The parameters of a kernel that measures only some blocks; their reader is the engine's expansion.py. */
void sampling_parameters(const struct sampled *sampled, uint64_t parameters[SAMPLING_PARAMETERS]);

#endif
