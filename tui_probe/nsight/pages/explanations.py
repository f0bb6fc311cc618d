"""Names of the pages of imported files, and how to read each. Imports nothing heavy."""

from __future__ import annotations

from typing import Final, Literal

TRACE_PAGES: Final = frozenset({"sectors", "critical", "lines", "sass"})
"""Pages of ncu that compare with traces."""
NSYS_TRACE_PAGES: Final = frozenset({"kernels"})
NcuPage = Literal["kernels", "metrics", "traffic", "sectors", "critical", "averages", "lines", "sass"]
NCU_PAGES: Final[tuple[NcuPage, ...]] = (
    "kernels", "metrics", "traffic", "sectors", "critical", "averages", "lines", "sass",
)  # fmt: skip
NsysPage = Literal["totals", "kernels", "ranges", "gaps", "timeline", "sums"]
NSYS_PAGES: Final[tuple[NsysPage, ...]] = ("totals", "kernels", "ranges", "gaps", "timeline", "sums")


EXPLANATIONS: Final[dict[str, tuple[str, ...]]] = {
    "kernels": (
        "One row per kernel and launch configuration (grid and block). Rows are sorted by kept time."
        " “Kept” launches are the launches of the measured iterations, after the warm-up. If nothing repeats, all"
        " launches are kept. Kept time and share cover kept launches; total, mean and p99 cover all launches. Press"
        " Enter to see every launch. Each iteration launches a kernel once or several times. The options --warmup and"
        " --runs set the number of warm-up iterations and of measured iterations. Without these options, iterations"
        " are found in the launch sequence: they are its repeating part.",
        "Blocks of a grid share global memory and L2. Threads of a block share its shared memory and barriers. All"
        " blocks on an SM share its L1. A grid with fewer blocks than SMs leaves SMs idle. If a kernel is slow and no"
        " unit is busy, check its grid first.",
    ),
    "metrics": (
        "One row per value of a launch. JSON and CSV contain values in base units: bytes, ns, hz, bytes/s. A metric"
        " that ncu lists in two sections has two rows. – stands for ncu's “n/a” and “no data”.",
        "Metrics ending in peak_sustained are constants of the GPU: the possible rate, not the measured rate. Metrics"
        " ending in .sum are measured totals.",
    ),
    "traffic": (
        "Bytes of DRAM, L2 and L1 moved per iteration. Values are means over the measured iterations. The metrics"
        " are dram__bytes.sum (DRAM), lts__t_bytes.sum (L2) and l1tex__t_bytes.sum (L1). “of best” is the row's value"
        " divided by the smallest value of all rows.",
        "Do caches distort these values? Yes, in two ways. First, ncu flushes all caches before each pass, so each"
        " launch starts with cold caches. Without ncu, a kernel reads some data of earlier kernels from L2;"
        " under ncu, it reads this data from DRAM. Second, data that fits in L2 is written back after the"
        " kernel ends. DRAM traffic can therefore be less than the bytes that the kernel writes. For warm caches, run"
        " ncu with --cache-control none, and compare.",
        "L1 bytes are requested by threads, L2 bytes are L1 misses, DRAM bytes are L2 misses. More blocks for the same"
        " work do not request more bytes. If DRAM bytes grow with the number of blocks and L1 bytes do not, blocks"
        " evict each other's data from L2.",
    ),
    "sectors": (
        "Requests and sectors of global memory, by kernel. A request is one load or store that a warp executes with"
        " at least one active lane. A sector is 32 bytes. 32 adjacent lanes with 2, 4, 8 or 16 bytes each need 2, 4,"
        " 8 or 16 sectors; 32 scattered lanes need 32 sectors. ncu needs permission to count requests and sectors; a"
        " probe does not.",
        "Expected sectors of a tensor = batch × heads × sequence length × head dimension × bytes / 32. A kernel that"
        " writes the tensor once, coalesced, stores exactly this number of sectors; the maximum is one sector per"
        " element. “with row sums” means that the kernel also stores one fp32 value per row and head. Attention for"
        " training does this: the value is the logarithm of the row's sum of exponentials. Example: batch 1, sequence"
        " length 128, 32 heads of 128 bf16 values: 32 768 sectors for the result + 512 for the row sums = 33 280.",
        "The column “vs. expected” shows “equal”, “with row sums”, or the measured store sectors divided by the"
        " expected sectors. If this ratio is below 1, the kernel stores only a part of the tensor, or stores a"
        " different tensor. If this ratio is above 1, adjacent lanes do not store adjacent elements. If there is more"
        " than one sector per element, the kernel stores more than the tensor. “= probes” means that ncu and the probe"
        " counted the same; if the counts differ, the difference is shown.",
        "The loads and stores on this page do not include accesses by cp.async or by a tensor map (TMA): ncu counts"
        " these accesses in other metrics. On Ampere and later, the page can therefore show fewer loads and stores than"
        " the tensor needs.",
    ),
    "critical": (
        "Selection of the critical kernel of the iterations. The critical kernel is the kernel that computes the"
        " matrix products or, if there are no matrix products, the kernel with the most time. The lines below the table"
        " show each selection step and the number of kernels left. Tensor work and share are sums over the kept"
        " launches (see page Kernels). Activity is sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed;"
        " values below 5 % mean nothing, because kernels without matrix instructions also reach 5 %. A probe counts"
        " the operations directly and needs no permission.",
        "The type is the type of most tensor operations. Without tensor operations, the page shows the type of most"
        " arithmetic instructions (ffma, fadd, fmul: fp32; d…: fp64; h…: fp16). Metrics such as"
        " …_op_ffma_pred_on.avg.peak_sustained are constants of the GPU and cannot distinguish types; use"
        " …_pred_on.sum. Only tensor core operations or the kernel's name distinguish bf16 from fp16.",
        "“Bound” names the unit that is closer to its peak, compute or memory. “Neither” means that compute and"
        " memory are below 60 %. A kernel with “neither” is probably latency bound: it has too few blocks or warps,"
        " or its warps wait. Small problems do much arithmetic per byte of DRAM because their data stays in L1 and"
        " L2.",
    ),
    "averages": (
        "Mean, min and max of each metric of each kept kernel. Each value is over the launches in the measured"
        " iterations; the warm-up is excluded. Min and max show the spread. The means are the values to quote. If"
        " ncu did not collect a metric, collect it with --metrics NAME, or with --section SECTION if a section"
        " contains the metric.",
        "The mean of a percentage or a rate gives every launch the same weight, regardless of its duration. Values"
        " are in base units: bytes, ns, hz, bytes/s.",
    ),
    "lines": (
        "Counters of every source line, sorted by stalls. Values are means per launch. Stalls are samples of waiting"
        " warps; “why” is their most frequent reason. A request is one warp instruction that accesses global memory."
        " Sectors are the 32-byte sectors that the request touches; ideal is the minimum for the requested bytes.",
        "With --trace, requests and sectors are compared with a probe's counts of the same line; ≠ marks differences."
        " tui-probe run counts accesses by line by default. Without nvcc -lineinfo, the report has no"
        " source lines. The ncu option --import-source yes adds the text of the lines.",
    ),
    "sass": (
        "The counters of the page Lines, for each SASS instruction. Rows are in code order. Offsets are relative to"
        " the first counted instruction.",
        "With --trace, the counts of a SASS probe are compared by offset. A PTX probe counts accesses in PTX, before"
        " the compiler moves, merges or repeats them. The counts of a PTX probe are therefore compared only for lines"
        " that have exactly one access in PTX and exactly one access in SASS.",
    ),
    "nsys totals": (
        "One row per kernel, sorted by time. Time is the sum over all launches on all streams. If kernels run"
        " concurrently, the sum contains the full time of each kernel. The share is relative to the time of all"
        " kernels shown. p99 is the 99th percentile of launch times; if it is far above the median, a few launches are"
        " much slower than the other launches.",
        "Press Enter to see the launches of a kernel. Within a range, the share is relative to the time of the kernels"
        " in the range.",
    ),
    "nsys kernels": (
        "All kernel launches on all streams, sorted by start. “few blocks” marks grids with fewer blocks than the"
        " GPU has SMs. With few blocks, some SMs are idle. A few busy SMs reach a lower bandwidth, because each SM"
        " has a limited number of bytes in flight. Blocks that do not fit at the same time run in waves; more waves"
        " add no bandwidth, and their blocks compete for L2.",
        "Blocks share L2 and DRAM. Threads of one block share its shared memory and can wait for each other at"
        " barriers; blocks cannot wait for each other, except in a cluster or a cooperative launch. All warps of a"
        " block run on one SM.",
    ),
    "nsys ranges": (
        "NVTX ranges and the time of their kernels. A kernel belongs to a range if it was launched within the range,"
        " on the same thread. On each stream, the range then extends from the start of its first kernel to the end"
        " of its last kernel. Host time (sleeping, Python) does not count, and ranges without launches have no row."
        " Indentation shows nesting.",
        "Press Enter on a range to see its kernels with the time of their launches. Press Enter on a kernel to see"
        " its launches. With --page totals --search NAME, tui-probe import prints the kernels of all ranges whose"
        " names contain NAME.",
    ),
    "nsys sums": (
        "One row per range name. “Calls” counts the ranges that launched a kernel; time is the kernel time on all"
        " streams. Each kernel counts once. Mean and p99 are per call. A range can contain another range of the same"
        " name, e.g. in a recursive function. The outer and the inner call then both include the inner kernels, and"
        " mean × calls exceeds the total. The share is relative to the time of all kernels. Shares of nested ranges"
        " add up to more than 100 %.",
        "Press Enter to see the kernels in all ranges of this name, one row per kernel.",
    ),
    "nsys gaps": (
        "Time between two kernels of a stream, longest first. A gap is the time from the end of one kernel to the"
        " start of the next kernel on the same stream. “Why” is the cause of most of the gap: a copy on the stream,"
        " or a late launch (the host launched after the previous kernel had ended). In other gaps, the kernel waited"
        " for the GPU itself (typically 1 µs), another stream, or an event.",
    ),
    "nsys timeline": (
        "One row per stream shows its kernels. Below the kernels are the NVTX ranges projected on the stream,"
        " outermost first. Where space allows, each kernel and range is a bar with its name. If space is short, the"
        " height of a cell is the share of the cell's time in which a kernel ran. Bars with the same name have the"
        " same colour; colours only distinguish neighbours.",
    ),
}
