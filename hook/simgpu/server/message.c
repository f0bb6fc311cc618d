#include "message.h"

#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the protocol is little-endian"
#endif

void message_put(struct message *message, const void *bytes, size_t count)
{
    if (message->failed || !count)
        return;
    if (count > message->capacity - message->length) {
        size_t capacity = (message->length + count) * 2;
        uint8_t *moved = realloc(message->bytes, capacity);
        message->failed = !moved;
        if (!moved)
            return;
        message->bytes = moved;
        message->capacity = capacity;
    }
    memcpy(message->bytes + message->length, bytes, count);
    message->length += count;
}

void message_put_u32(struct message *message, uint32_t value)
{
    message_put(message, &value, sizeof value);
}
void message_put_u64(struct message *message, uint64_t value)
{
    message_put(message, &value, sizeof value);
}

void message_put_bytes(struct message *message, const void *bytes, size_t count)
{
    if (count > UINT32_MAX)
        message->failed = true;
    message_put_u32(message, (uint32_t)count);
    message_put(message, bytes, count);
}

void message_free(struct message *message)
{
    free(message->bytes);
    *message = (struct message){0};
}

static const uint8_t *take(struct reader *reader, size_t count)
{
    if (reader->failed || count > (size_t)(reader->end - reader->next)) {
        reader->failed = true;
        return NULL;
    }
    reader->next += count;
    return reader->next - count;
}

uint32_t reader_u32(struct reader *reader)
{
    uint32_t value = 0;
    const uint8_t *bytes = take(reader, sizeof value);
    if (bytes)
        memcpy(&value, bytes, sizeof value);
    return value;
}

uint64_t reader_u64(struct reader *reader)
{
    uint64_t value = 0;
    const uint8_t *bytes = take(reader, sizeof value);
    if (bytes)
        memcpy(&value, bytes, sizeof value);
    return value;
}

const uint8_t *reader_bytes(struct reader *reader, size_t *count)
{
    *count = reader_u32(reader);
    return take(reader, *count);
}

char *reader_text(struct reader *reader)
{
    size_t length;
    const uint8_t *bytes = reader_bytes(reader, &length);
    char *text = bytes ? malloc(length + 1) : NULL;
    if (!text) {
        reader->failed = true;
        return NULL;
    }
    memcpy(text, bytes, length);
    text[length] = '\0';
    return text;
}
