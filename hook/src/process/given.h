/* Variables that the launcher gave the process, by their names. */
#ifndef TUI_PROBE_GIVEN_H
#define TUI_PROBE_GIVEN_H

/* NULL if it is not set. A program may clear its environment before it opens the driver: then it is as it was when the
 * program started. */
const char *given(const char *name);

#endif
