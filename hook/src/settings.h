/* What the launcher asked for, read from the environment once when the hook is loaded. */
#ifndef TUI_PROBE_SETTINGS_H
#define TUI_PROBE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reasons.h"
#include "sampling.h"

struct launch_range {
    uint64_t first, last;
};

/* What results leave free of the trace's disk: both hold. */
struct min_free {
    uint64_t bytes;
    unsigned percent; /* of its size */
};

struct settings {
    const char *trace_root; /* directory of trace directories; NULL: the hook only passes calls on */
    const char *stamp;      /* start of the run, if this process was started by the launcher itself */
    const char *engine;     /* path of the engine's socket */
    const char *probe;      /* path of the probe file */
    char **only, **never;   /* NULL-terminated substrings of kernel names */
    struct launch_range *launches;
    size_t n_launches;
    bool scheduled;           /* the schedule says which launches are probed */
    struct sampling sampling; /* which blocks are measured */
    bool benchmark;
    bool detail; /* maps are not reduced */
    unsigned engine_timeout; /* seconds to wait for the engine */
    unsigned exit_timeout;   /* seconds that the end of the program may wait for its kernels */
    uint64_t max_trace_bytes;  /* 0: no limit */
    struct min_free min_free;  /* all 0: results may fill the disk */
    uint64_t max_probe_memory; /* 0: an eighth of the device's memory */
};

extern struct settings settings;

void settings_read(void);

/* Why a kernel of this name is not to be probed, or NULL. */
const struct reason *settings_filter(const char *kernel_name);

/* Whether the n-th launch (from 0) of a kernel is to be probed. */
bool settings_selects_launch(uint64_t n);

#endif
