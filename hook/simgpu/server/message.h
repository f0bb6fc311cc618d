/* Building the body of a request, and reading the body of a reply. */
#ifndef TUI_PROBE_SIMGPU_MESSAGE_H
#define TUI_PROBE_SIMGPU_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct message {
    uint8_t *bytes;
    size_t length, capacity;
    bool failed; /* out of memory: what was put since is lost */
};

void message_put(struct message *message, const void *bytes, size_t count);
void message_put_u32(struct message *message, uint32_t value);
void message_put_u64(struct message *message, uint64_t value);
void message_put_bytes(struct message *message, const void *bytes, size_t count); /* with its length */
void message_free(struct message *message);

struct reader {
    const uint8_t *next, *end;
    bool failed; /* the message ended too early: what was got since is zero */
};

uint32_t reader_u32(struct reader *reader);
uint64_t reader_u64(struct reader *reader);
const uint8_t *reader_bytes(struct reader *reader, size_t *count); /* not copied; NULL if failed */
char *reader_text(struct reader *reader);                          /* to be freed; NULL if failed */

#endif
