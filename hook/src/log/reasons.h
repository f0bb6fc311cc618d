/* Reasons: codes of the list that Python reads too, each with its sentence. A record may refer to
 * a reason at any later time, so none is ever freed; equal ones are kept once. */
#ifndef TUI_PROBE_REASONS_H
#define TUI_PROBE_REASONS_H

#include "cuda_abi.h"

/* The length of a list of at most four parameters. */
#define REASON_COUNT(...) REASON_COUNT_(0, ##__VA_ARGS__, 4, 3, 2, 1, 0)
#define REASON_COUNT_(zero, a, b, c, d, n, ...) n

/* The hook writes codes. */
#define OLDER(name, sentence)

enum reason_code {
#define REASON(name, code, parameters, sentence, advice) REASON_##name,
#include "../../../tui_probe/reasons/reasons.def"
#undef REASON
    REASON_CODES
};

/* The number of parameters of each sentence. */
enum {
#define REASON(name, code, parameters, sentence, advice) REASON_##name##_PARAMETERS = REASON_COUNT parameters,
#include "../../../tui_probe/reasons/reasons.def"
#undef REASON
};

struct reason {
    enum reason_code code;
    const char *written; /* "SENTENCE code CODE", on one line, as logs have it */
};

/* Those whose sentence has no parameters; see reason(). */
extern const struct reason reasons_plain[REASON_CODES];

/* An error of the compiler where CONDITION, a constant, is false; else 0. */
#define REASON_ENSURE(condition) (0 * (int)sizeof(char[(condition) ? 1 : -1]))

/* A reason whose sentence has no parameters. Costs nothing. */
#define reason(name) (&reasons_plain[REASON_##name + REASON_ENSURE(REASON_##name##_PARAMETERS == 0)])

/* A reason with the texts of its parameters, in the order of the list. */
#define reason_with(name, ...)                                                                              \
    reason_fill((enum reason_code)(REASON_##name +                                                          \
                                   REASON_ENSURE(REASON_COUNT(__VA_ARGS__) == REASON_##name##_PARAMETERS)), \
                (const char *const[]){__VA_ARGS__})

const struct reason *reason_fill(enum reason_code code, const char *const *parameters);

/* The reason why the file at PATH could not be written or read, by errno. */
const struct reason *reason_of_file(const char *path, int error);

/* An error of the driver. */
const struct reason *reason_of_driver(CUresult result);

/* A reason as the engine writes it, with its code at the end. */
const struct reason *reason_read(const char *written);

enum { REASON_NUMBER_SIZE = 24 };

/* A number as a parameter; TEXT is returned. */
const char *reason_number(char text[REASON_NUMBER_SIZE], unsigned long long number);

/* Bytes of a budget as a user types them, "10M" or "1.5G", else "1000 bytes"; TEXT is returned. */
const char *reason_budget(char text[REASON_NUMBER_SIZE], unsigned long long bytes);

/* "CUDA_ERROR_…", or "error N" where the driver has no name for it; good until the thread's next call. */
const char *reason_error_name(CUresult result);

/* Forgets that another thread may be at work, in a forked child. */
void reasons_reset(void);

#endif
