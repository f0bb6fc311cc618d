/* Calls by `syscall` that end the process or may: each is treated as the function of the same name. */
#ifndef TUI_PROBE_RAW_CALLS_H
#define TUI_PROBE_RAW_CALLS_H

#include "references.h"

/* END comes before the process ends with a status, END_THREAD before the calling thread does; LEAVE before another
 * program takes its place, and STAY where that has failed. */
struct raw_call_ends {
    void (*end)(int status);
    void (*end_thread)(int status);
    void (*leave)(void);
    void (*stay)(void);
};

/* REFERENCE receives the name of `syscall`, and the function that is before that of the C library. */
void raw_calls_watch(const struct raw_call_ends *ends, struct reference *reference);

#endif
