/* The functions that have another program take the place of this one: what is on its way to disk is saved first. */
#ifndef TUI_PROBE_EXEC_CALLS_H
#define TUI_PROBE_EXEC_CALLS_H

#include "references.h"

enum { EXEC_FUNCTIONS = 9 };

/* Each of them calls LEAVE first, and STAY if it has failed. LIST receives their names, and the functions that stand
 * before those of the C library. */
void exec_calls_watch(void (*leave)(void), void (*stay)(void), struct reference list[EXEC_FUNCTIONS]);

#endif
