/* Thread-local memory of fixed place (DF_STATIC_TLS). The loader reserves it before it loads an audit library, and so
 * before it knows what the program's libraries need: they take it from a small reserve, which is meant for libraries
 * that are opened later. A program that needs more does not start. */
#ifndef TUI_PROBE_AUDIT_STATIC_TLS_H
#define TUI_PROBE_AUDIT_STATIC_TLS_H

#include <link.h>
#include <stdbool.h>

/* Adds what a library needs that the program starts with. Whether all of them leave too little. */
bool static_tls_is_short_with(const struct link_map *library);

#endif
