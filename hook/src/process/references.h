/* References of loaded objects to functions of the C library that we are before. A hook that was preloaded comes
 * before the C library in the order of symbols; one that was opened as the driver does not, so references are
 * redirected. */
#ifndef TUI_PROBE_REFERENCES_H
#define TUI_PROBE_REFERENCES_H

#include <stddef.h>

struct reference {
    const char *name;
    void *ours;
};

/* The function that the program would call without OURS of that name. NULL: there is none. */
void *references_next(const char *name, const void *ours);

/* Redirects the references of every other object that is loaded to ours. To be called in a constructor only: no other
 * thread is loading an object then. */
void references_redirect(const struct reference *list, size_t count);

#endif
