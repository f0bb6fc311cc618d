/* Settings of the launcher, read from the environment once when the hook is loaded. */
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

/* The space that results leave free on the trace's disk: both limits hold. */
struct min_free {
    uint64_t bytes;
    unsigned percent; /* of its size */
};

/* The choice of machine code to probe where a kernel has no PTX. */
enum machine_code_choice {
    MACHINE_CODE_AUTO,
    MACHINE_CODE_ALL,
    MACHINE_CODE_OFF
}; /* auto: not that of closed libraries */

enum { MOST_PROBES = 16, MOST_KEPT = 64 };

/* A launch to save: the first at or behind number LAUNCH of the process whose kernel's name contains KERNEL. */
struct kept_choice {
    const char *kernel;
    uint64_t launch;
};

/* One of the probes of a run. */
struct probe_choice {
    const char *name; /* NULL where the run has one probe only, whose files need no folder of its own */
    struct sampling sampling; /* which blocks it measures */
    bool is_part; /* it counts, and one kernel may have all such probes at the same time: TUI_PROBE_FUSED */
};

struct settings {
    const char *trace_root; /* directory of trace directories; NULL: the hook only passes calls on */
    const char *stamp;      /* start of the run, if this process was started by the launcher itself */
    const char *engine;     /* path of the engine's socket */
    const char *probe;      /* path of the probe file, the first one of several */
    const char *probe_folder; /* of several: where the files of all are, as NAME.toml */
    struct probe_choice probes[MOST_PROBES];
    size_t n_probes; /* at least 1 */
    bool fuses; /* several of them are parts of a fused probe */
    char **only, **never;   /* NULL-terminated substrings of kernel names */
    char **hashed;          /* NULL-terminated: kernels after whose launches memory is hashed, see memory_hash.h */
    struct launch_range *launches;
    size_t n_launches;
    bool scheduled; /* the schedule says which launches are probed */
    bool patient;   /* launches wait for every kernel to be prepared */
    bool graphs;             /* replays of CUDA graphs are probed, and not only seen: TUI_PROBE_GRAPHS=seen */
    bool node_times;         /* and kernels in them are timed one by one: TUI_PROBE_GRAPHS=timed */
    bool heavy;     /* all probes cost much: fewer of them */
    bool benchmark;
    bool save_results; /* of a benchmark, too, which saves none by itself */
    bool replays;  /* a kernel is launched again for probes that none of its launches had */
    struct kept_choice kept[MOST_KEPT];
    size_t n_kept;
    uint64_t max_kept_bytes; /* of their memory, before and after; CONTROL_NO_LIMIT: any */
    bool lists_allocations; /* kernels run again, here or in another process, or a probe checks their accesses */
    bool memusage; /* launches are sized, not probed */
    bool detail; /* maps are not reduced */
    enum machine_code_choice machine_code;
    bool needs_machine_code; /* a probe is for machine code alone, also where a kernel has PTX */
    const char *graft_faults; /* a file that names kernels not to be grafted; NULL: there is none */
    const char *empty_kernels; /* a folder with a kernel that does nothing, for each kind of device; NULL: none */
    bool keep_secrets; /* the command line is logged as it is */
    bool launches_block; /* the call that launches returns at the kernel's end */
    bool runs_ptx; /* the driver compiles the PTX of images that have SASS for the device: a simulated one does */
    bool simulated_checks; /* the simulated GPU checks accesses */
    bool times; /* some launches are timed */
    bool host_records; /* a probe's records are to outlive an error of the context */
    bool under_ncu; /* Nsight Compute started this process: it would count our kernels, and replay probed ones */
    bool capture_range;     /* only launches between cuProfilerStart and cuProfilerStop */
    const char *nvtx;       /* only launches in ranges of this text; NULL: all */
    uint64_t long_launch; /* milliseconds after which a launch is reported without a watchdog */
    uint64_t watchdog; /* milliseconds after which a launch counts as one that does not end; 0: none does */
    unsigned engine_timeout; /* seconds to wait for the engine */
    const char *ending;      /* a file that is there once the run is asked to end; NULL: no one tells */
    const char *notes;       /* a file for lines to the launcher, see run_notes.h; NULL: no one reads them */
    const char *unseen_drivers;      /* a file for lines about drivers that are not called by us; NULL: no one asks */
    unsigned exit_timeout;   /* seconds that the end of the program may wait for its kernels */
    const char *control;       /* path of the run's control page; NULL: there is none */
    uint64_t max_write_rate; /* bytes per second, where launches are sampled; CONTROL_NO_LIMIT: any */
    uint64_t max_trace_bytes, max_result_files,
        max_log_bytes; /* where there is none; CONTROL_NO_LIMIT: as many as are */
    struct min_free min_free;  /* all 0: results may fill the disk */
    uint64_t max_probe_memory; /* 0: a tenth of what is free of the device's memory */
    uint64_t max_host_memory;  /* for records on their way to files, and copies of images; see host_memory.h */
};

extern struct settings settings;

void settings_read(void);

/* The reason why a kernel of this name is not to be probed, or NULL. */
const struct reason *settings_filter(const char *kernel_name);

/* True if the n-th launch (from 0) of a kernel is to be probed. */
bool settings_selects_launch(uint64_t n);

#endif
