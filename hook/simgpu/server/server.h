/* The server: a Python process, one for this one, which reads PTX and executes it. protocol.h says how they talk. */
#ifndef TUI_PROBE_SIMGPU_SERVER_H
#define TUI_PROBE_SIMGPU_SERVER_H

#include "cuda_abi.h"
#include "message.h"
#include "protocol.h"

/* Starts the server unless it runs. The caller holds the driver's lock. */
CUresult server_start(void);

struct reply {
    struct reader body;
    char *error; /* what went wrong, NULL if nothing */
    uint8_t *memory;
};

/* Sends a request and waits for its reply; safe in several threads. In any case `reply` must be freed, and the
 * caller tells a user of `reply->error`. */
CUresult server_call(enum request_kind kind, const struct message *request, struct reply *reply);

/* CUDA_SUCCESS, or why the server answers no more: CUDA_ERROR_LAUNCH_FAILED if it has ended, CUDA_ERROR_NOT_INITIALIZED
 * if it did not start. No context works then. */
CUresult server_failure(void);

void reply_free(struct reply *reply);

/* In a forked child: drops the parent's connection. */
void server_forget(void);

#endif
