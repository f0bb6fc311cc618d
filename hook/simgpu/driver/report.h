/* Messages of the simulated driver to the user. */
#ifndef TUI_PROBE_SIMGPU_REPORT_H
#define TUI_PROBE_SIMGPU_REPORT_H

/* Prints "tui-probe simulated GPU: TEXT" to stderr, and appends it to the file that TUI_PROBE_SIM_LOG names. The same
 * text is printed once in a process. */
__attribute__((format(printf, 1, 2))) void report(const char *format, ...);

#endif
