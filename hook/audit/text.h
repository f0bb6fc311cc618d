/* Text without a C library. */
#ifndef TUI_PROBE_AUDIT_TEXT_H
#define TUI_PROBE_AUDIT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

static inline bool text_equal(const char *one, const char *other)
{
    while (*one && *one == *other)
        one++, other++;
    return *one == *other;
}

/* The rest of TEXT after PREFIX, or NULL. */
static inline const char *text_after(const char *text, const char *prefix)
{
    while (*prefix)
        if (*text++ != *prefix++)
            return NULL;
    return text;
}

static inline bool text_contains(const char *text, const char *part)
{
    for (; *text; text++)
        if (text_after(text, part))
            return true;
    return false;
}

/* The last component of PATH; NULL if it has no slash. */
static inline const char *text_base(const char *path)
{
    const char *base = NULL;
    for (; *path; path++)
        if (*path == '/')
            base = path + 1;
    return base;
}

/* Adds TEXT at AT, below END, and returns the new end; END where there is no room. */
static inline char *text_add(char *at, const char *end, const char *text)
{
    while (*text && at < end)
        *at++ = *text++;
    return at;
}

/* "libcuda.so", or that and a version. */
static inline bool text_is_driver_name(const char *file)
{
    const char *version = text_after(file, "libcuda.so");
    if (!version || (*version && (*version != '.' || !version[1])))
        return false;
    while (*version == '.' || (*version >= '0' && *version <= '9'))
        version++;
    return !*version;
}

#endif
