/* Requests of programs to the dynamic loader for the driver. The name libcuda.so.1 is ours already, by our SONAME;
 * `dlopen` and `dlmopen` are interposed (loader_entry.S) for the other names and paths. */
#ifndef TUI_PROBE_LOADER_H
#define TUI_PROBE_LOADER_H

#include <stdbool.h>

/* "libcuda.so", or that and a version: "libcuda.so.1", "libcuda.so.580.95.05". */
bool loader_is_driver_name(const char *file);

/* True if two paths lead to one file. */
bool loader_is_same_file(const char *path, const char *other);

/* The path that this library was loaded from, or NULL. */
const char *loader_own_path(void);

/* dlopen as the C library has it, which gives what was asked for. */
void *loader_open(const char *path, int flags);

/* The path to open when the code at CALLER asks for NAME: our own file if that is the driver, else NAME itself. */
const char *loader_name(const char *name, const void *caller);
const char *loader_name_in(long list, const char *name, const void *caller);

/* The functions that ours are before. They tell whom to open a library for by their return address, so they are
 * jumped to and not called. */
void *loader_next_dlopen(void);
void *loader_next_dlmopen(void);

#endif
