/* Images that the program has loaded, and the kernels that its handles stand for. */
#ifndef TUI_PROBE_REGISTRY_H
#define TUI_PROBE_REGISTRY_H

#include "kernel.h"

/* Registers a load with the hash of its OPTIONS. Takes over the caller's reference to IMAGE (NULL: an image that was
 * not seen). HANDLE leads to no other load any more: see registry_forget_code. */
struct code *registry_add_code(struct image *image, void *handle, bool is_library, uint64_t options);

/* Another handle for the same load: the module of a library in some context. */
void registry_alias_code(struct code *code, void *handle);

struct code *registry_find_code(void *handle);

/* The driver is about to unload it, or, with false, has not: no driver's function is given its handles meanwhile. */
void registry_code_leaves(struct code *code, bool leaves);
bool registry_code_is_leaving(const struct code *code);

/* Forgets a load and all handles of its kernels, but not what another thread has since loaded under the same
 * handles. The record stays valid until it is freed. Forgetting it again does nothing. */
void registry_forget_code(struct code *code);

/* CONTEXT may be about to go: what is loaded from here on under its handle is another's. */
void registry_leave_context(CUcontext context);

/* It is GONE, with all that was loaded in it and all handles of libraries in it; or it is not. Returns the loads that
 * are gone, forgotten and linked by OLDER. */
struct code *registry_settle_context(CUcontext context, bool gone);

/* Frees the record of a forgotten load, whose variants are freed. */
void registry_free_code(struct code *code);

/* The kernel NAME of CODE, made on first sight; HANDLE then leads to it. */
struct instance *registry_add_instance(struct code *code, const char *name, void *handle, bool is_library_kernel);

/* Another handle for the same kernel: the function of a library kernel in some context. */
void registry_alias_instance(struct instance *instance, void *handle);

/* Takes no lock. NULL for a handle that was never seen. */
struct instance *registry_find(const void *handle);

/* The instance of KERNEL that HANDLE leads to; NULL where that was unloaded. */
struct instance *registry_find_of(const struct kernel *kernel, const void *handle);

/* Looks a handle up in the driver that the program got past us. NULL if the driver cannot say. */
struct instance *registry_adopt(CUfunction function);

/* The instance behind a handle that is launched, found in one of these ways, with its kernel. NULL without memory. */
struct instance *registry_instance(CUfunction function);

/* The original as a CUfunction of the current context, which attributes are asked of; NULL if it has none. */
CUfunction registry_function(const struct instance *instance, CUfunction launched);

/* Calls VISIT for every instance of a load; the registry is locked meanwhile. */
void registry_each(void (*visit)(struct instance *instance, void *argument), void *argument);

/* Forgets everything, in a forked child. */
void registry_reset(void);

#endif
