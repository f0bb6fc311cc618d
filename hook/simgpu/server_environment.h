// The environment of the server.
#pragma once

// A copy of this process's environment in which no library named libcuda.so.1 is preloaded or found (the server must
// not run under the hook), and TUI_PROBE_SIM_PYTHONPATH stands before PYTHONPATH. NULL when out of memory.
char **server_environment(void);

void server_environment_free(char **environment);
