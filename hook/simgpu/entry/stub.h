/* A name that the real driver exports and the simulated one does not implement. Weak: a definition in any other
 * source file takes its place. */
#ifndef TUI_PROBE_SIMGPU_STUB_H
#define TUI_PROBE_SIMGPU_STUB_H

#define STUB(name)                                              \
    int name(void);                                             \
    __attribute__((weak, visibility("default"))) int name(void) \
    {                                                           \
        return 801; /* CUDA_ERROR_NOT_SUPPORTED */              \
    }

#endif
