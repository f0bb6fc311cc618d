/* Benchmark mode: how much slower each kernel is with its probe.
 *
 * Five launches of the original and five of the probed kernel are timed for each kernel and geometry. Where
 * that is safe all of them run instead of the first launch, its memory put back between them; elsewhere
 * the program's own launches alternate. Records go to real buffers but not to files. */
#ifndef TUI_PROBE_BENCHMARK_H
#define TUI_PROBE_BENCHMARK_H

#include "launch.h"

/* Launches KERNEL, timed as long as there are not enough times. The result is the program's. */
CUresult benchmark_launch(struct launch *launch, struct kernel *kernel);

/* Logs what was timed and has no counterpart. */
void benchmark_end(void);

void benchmark_reset(void);

#endif
