/* What the program has loaded: images, and the kernels that its handles stand for. */
#ifndef TUI_PROBE_REGISTRY_H
#define TUI_PROBE_REGISTRY_H

#include "kernel.h"

/* Registers a load. Takes over the caller's reference to IMAGE (NULL: an image that was not seen). */
struct code *registry_add_code(struct image *image, void *handle, bool is_library);

/* Another handle for the same load: the module of a library in some context. */
void registry_alias_code(struct code *code, void *handle);

struct code *registry_find_code(void *handle);

/* The driver is about to unload it, or, with false, has not: no driver's function is given its handles meanwhile. */
void registry_code_leaves(struct code *code, bool leaves);

/* Forgets a load and all handles of its kernels, but not what another thread has since loaded under the same
 * handles. The record stays valid. Accepts NULL. */
void registry_forget_code(struct code *code);

/* CONTEXT may be about to go: what is loaded from here on under its handle is another's. */
void registry_leave_context(CUcontext context);

/* It is GONE, with all that was loaded in it and all handles of libraries in it; or it is not. */
void registry_settle_context(CUcontext context, bool gone);

/* The kernel NAME of CODE, made on first sight; HANDLE then leads to it. */
struct kernel *registry_add_kernel(struct code *code, const char *name, void *handle, bool is_library_kernel);

/* Another handle for the same kernel: the function of a library kernel in some context. */
void registry_alias_kernel(struct kernel *kernel, void *handle);

/* Takes no lock. NULL for a handle that was never seen. */
struct kernel *registry_find(const void *handle);

/* Looks a handle up in the driver that the program got past us. NULL if the driver cannot say. */
struct kernel *registry_adopt(CUfunction function);

/* The kernel behind a handle, found in one of these ways. NULL without memory. */
struct kernel *registry_kernel(CUfunction function);

/* Gives the kernel its place in order of first launch. */
void registry_number_kernel(struct kernel *kernel);

/* Calls VISIT for every kernel; the registry is locked meanwhile. */
void registry_each(void (*visit)(struct kernel *kernel, void *argument), void *argument);

/* Forgets everything, in a forked child. */
void registry_reset(void);

#endif
