/* Probe memory of one measured launch. */
#ifndef TUI_PROBE_BENCH_BUFFER_H
#define TUI_PROBE_BENCH_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

#include "launch.h"

struct variant;

struct bench_buffer {
    CUdeviceptr memory;
    size_t size;
};

/* Chooses the launch's capacities too. Returns why there is none, or NULL. */
const struct reason *bench_buffer_make(struct bench_buffer *buffer, struct launch *launch, struct kernel_probe *probe,
                                       struct variant *variant);

/* The same with the capacities that the launch has. */
const struct reason *bench_buffer_make_sized(struct bench_buffer *buffer, const struct launch *launch,
                                             const struct kernel_probe *probe);
void bench_buffer_free(struct bench_buffer *buffer);

/* Waits for the launch, and lets dynamic maps grow by what it wanted to keep. False if that is not known. */
bool bench_buffer_learn(const struct bench_buffer *buffer, const struct launch *launch, struct kernel_probe *probe);

/* The same. True if one did grow: what it left is not whole. */
bool bench_buffer_overflowed(const struct bench_buffer *buffer, const struct launch *launch, struct kernel_probe *probe,
                             const struct variant *variant);

/* Saves what the launch left as its result. */
void bench_buffer_save(const struct bench_buffer *buffer, const struct launch *launch, struct kernel_probe *probe);

#endif
