/* The process of the server. */
#ifndef TUI_PROBE_SIMGPU_SERVER_PROCESS_H
#define TUI_PROBE_SIMGPU_SERVER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* Settings of the server, passed when it starts. */
struct server_setup {
    int memory_file;
    uint64_t memory_address, memory_bytes; /* of the whole mapping */
    unsigned sm_count;
    const struct generation *generation;
};

/* Starts the server and returns our end of its socket, or -1 after a report. The server is not a child of this process:
 * a program that waits for all its children does not wait for it. */
int server_spawn(const struct server_setup *setup);

/* The Python that runs the server, for messages. */
const char *server_python(void);

#endif
