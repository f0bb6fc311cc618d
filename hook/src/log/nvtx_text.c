#include "nvtx_text.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 1000, WIDEST = 4 };

struct nvtx_domain {
    char *name;
};

static char *one_line(char *text)
{
    if (text && !*text) {
        free(text);
        text = strdup("-");
    }
    for (char *c = text; c && *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = ' ';
    return text;
}

char *nvtx_text(const char *text)
{
    return text ? one_line(strndup(text, LONGEST)) : strdup("-");
}

/* One code point as UTF-8; returns the bytes written. What is not a code point becomes a question mark. */
static size_t encode(uint32_t c, char *to)
{
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        c = '?';
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t bytes = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = bytes; i-- > 1; c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)((0xf00 >> bytes) | c);
    return bytes;
}

char *nvtx_wide_text(const wchar_t *text)
{
    if (!text)
        return nvtx_text(NULL);
    char *bytes = malloc(LONGEST + WIDEST + 1);
    size_t used = 0;
    for (; bytes && *text && used < LONGEST; text++)
        used += encode((uint32_t)*text, bytes + used);
    if (bytes)
        bytes[used] = '\0';
    return one_line(bytes);
}

char *nvtx_message(const struct nvtx_attributes *attributes)
{
    if (!attributes || attributes->size < sizeof *attributes)
        return nvtx_text(NULL);
    if (attributes->message_type == NVTX_MESSAGE_UNICODE)
        return nvtx_wide_text(attributes->message.unicode);
    if (attributes->message_type == NVTX_MESSAGE_ASCII)
        return nvtx_text(attributes->message.ascii);
    /* A registered string is the handle that we gave out, which is the text itself. */
    return nvtx_text(attributes->message_type == NVTX_MESSAGE_REGISTERED ? attributes->message.registered : NULL);
}

const char *nvtx_domain_name(const struct nvtx_domain *domain)
{
    return domain ? domain->name : "-";
}

/* Takes NAME. */
static const struct nvtx_domain *new_domain(char *name)
{
    struct nvtx_domain *domain = name ? malloc(sizeof *domain) : NULL;
    if (!domain) {
        free(name);
        return NULL;
    }
    for (char *c = name; *c; c++)
        if (*c == ' ')
            *c = '_';
    domain->name = name;
    return domain;
}

const struct nvtx_domain *nvtx_create_domain(const char *name)
{
    return new_domain(nvtx_text(name));
}

const struct nvtx_domain *nvtx_create_wide_domain(const wchar_t *name)
{
    return new_domain(nvtx_wide_text(name));
}

const char *nvtx_register_string(const struct nvtx_domain *domain, const char *text)
{
    (void)domain;
    return nvtx_text(text);
}

const char *nvtx_register_wide_string(const struct nvtx_domain *domain, const wchar_t *text)
{
    (void)domain;
    return nvtx_wide_text(text);
}
