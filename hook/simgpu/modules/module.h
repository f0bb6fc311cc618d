/* Modules and libraries: kernels and variables that came from one image. */
#ifndef TUI_PROBE_SIMGPU_MODULE_H
#define TUI_PROBE_SIMGPU_MODULE_H

#include "driver.h"

struct parameter {
    uint32_t offset, size;
};

/* Settings of a program for launches by cuLaunchGrid. */
struct legacy_launch {
    unsigned block[3], shared_bytes;
    size_t parameter_bytes;
    uint8_t *parameters;
};

struct kernel {
    struct module *module;
    uint32_t index; /* in the module */
    char *name;
    CUfunction function_handle;
    CUkernel kernel_handle; /* of a library's kernel, else NULL */
    bool described;         /* what follows is known only then */
    uint32_t static_shared_bytes, local_bytes, max_threads;
    int32_t registers; /* -1: the image has no machine code to tell */
    int estimated_registers;
    uint32_t parameter_count, parameter_bytes;
    struct parameter *parameters;
    unsigned cluster[3];                     /* that the kernel asks for, all 0 for none */
    int max_dynamic_shared, shared_carveout; /* set by the program */
    int non_portable_cluster;
    struct legacy_launch legacy_launch;
};

struct variable {
    char *name;
    bool is_constant;
    uint64_t address, size;
};

struct module {
    CUmodule handle;
    CUlibrary library_handle;    /* of a library, else NULL */
    const struct context *owner; /* NULL for a library */
    uint64_t server_id;
    uint32_t target; /* 80 for sm_80 */
    uint32_t kernel_count, variable_count;
    struct kernel *kernels;
    struct variable *variables;
    struct module *next;
};

/* The caller holds the driver's lock, in all but enter_kernel. */

/* Loads an image of at most `limit` bytes into a context, or as a library for NULL. `error` receives a text to be
 * freed, or NULL. */
CUresult module_load(const void *image, size_t limit, const struct context *owner, struct module **loaded,
                     char **error);

void module_unload(struct module *module);
void modules_unload_owner(const struct context *owner);

/* NULL if there is none of that name. */
struct kernel *module_kernel(struct module *module, const char *name);
struct variable *module_variable(struct module *module, const char *name);

/* The kernel behind a CUfunction, or behind a CUkernel used as one. NULL if it is neither. */
struct kernel *kernel_of(const void *handle);

/* Locks the driver and finds such a kernel. Fails, without the lock, for a handle that is none. */
CUresult enter_kernel(const void *handle, struct kernel **kernel);

/* Has the server compile the kernel and say what it is, once. */
CUresult kernel_describe(struct kernel *kernel);

/* The largest dynamic shared memory, bytes, that a launch of the kernel may ask for. */
int kernel_dynamic_shared_limit(const struct kernel *kernel);

/* 0 if not even one block fits. */
unsigned kernel_blocks_per_sm(const struct kernel *kernel, unsigned threads, size_t dynamic_shared_bytes);

#endif
