/* The environment of the server. */
#ifndef TUI_PROBE_SIMGPU_SERVER_ENVIRONMENT_H
#define TUI_PROBE_SIMGPU_SERVER_ENVIRONMENT_H

/* A copy of this process's environment for the server: without the settings of the program's own Python, with no
 * library named libcuda.so.1 preloaded or found (the server must not run under the hook), and with
 * TUI_PROBE_SIM_PYTHONPATH before PYTHONPATH. NULL when out of memory. */
char **server_environment(void);

void server_environment_free(char **environment);

#endif
