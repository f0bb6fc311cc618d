/* A child after fork. It starts clean: what its parent did is in the parent's trace. */
#ifndef TUI_PROBE_CHILD_H
#define TUI_PROBE_CHILD_H

/* Forgets the parent's launches, threads, files and locks. Other threads of the parent do not exist in the child, so a
 * lock that one of them held would never be released. After the parent's first launch the driver does not work in a
 * child, and there is nothing to trace. */
void child_begin(void);

#endif
