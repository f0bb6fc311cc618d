/* SHA-1 (FIPS 180-4), for the names of kernel directories. */
#ifndef TUI_PROBE_SHA1_H
#define TUI_PROBE_SHA1_H

#include <stddef.h>

enum { SHA1_HEX_SIZE = 41 };

/* Writes 40 lower-case digits and a NUL. */
void sha1_hex(const void *data, size_t size, char hex[SHA1_HEX_SIZE]);

#endif
