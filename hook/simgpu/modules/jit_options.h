/* Options of functions that compile: cuModuleLoadDataEx, cuLinkCreate. */
#ifndef TUI_PROBE_SIMGPU_JIT_OPTIONS_H
#define TUI_PROBE_SIMGPU_JIT_OPTIONS_H

/* Puts the text of an error, NULL for none, where the options ask for it. */
void give_jit_log(unsigned count, const int *options, void **values, const char *error);

#endif
