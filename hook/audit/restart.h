/* A program that cannot run with this library is executed anew without it, before any of its code has run. */
#ifndef TUI_PROBE_AUDIT_RESTART_H
#define TUI_PROBE_AUDIT_RESTART_H

/* If the environment preloads HOOK, executes the program anew without this library. Returns where that is not so, or
 * the system refuses. */
void restart_preloaded(char **arguments, char **environment, const char *hook);

#endif
