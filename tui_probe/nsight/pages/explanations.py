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
        "One row per kernel with one grid and block, since one name may stand for several configurations; the one that"
        " takes most of the kept time first. “kept” are the launches that count: those of the measured iterations,"
        " after the warm-up; where nothing repeats, all. Kept time and share are of those, total, mean and p99 of all"
        " launches, for which Enter shows every value. A measured program launches its kernels warm-up + runs times, or"
        " a multiple of that. The number is taken from --warmup and --runs, or found as the part of the launch sequence"
        " that repeats.",
        "Blocks of a grid share global memory and L2; threads of a block share its shared memory and barriers, and all"
        " blocks on an SM its L1. A grid with fewer blocks than SMs leaves SMs idle: those rows are the first to look"
        " at when a kernel is slow and no unit is busy.",
    ),
    "metrics": (
        "One row per value of a launch, in base units: bytes, ns, hz, bytes/s. The same name in two sections is two"
        " metrics. What ncu prints as n/a or no data is –.",
        "Names ending in peak_sustained are constants of the GPU, the same for every kernel: they tell what could be"
        " reached, not what was. Executed instructions are those ending in .sum.",
    ),
    "traffic": (
        "Bytes that one iteration moves, averaged over the measured iterations: DRAM dram__bytes.sum, L2"
        " lts__t_bytes.sum, L1 l1tex__t_bytes.sum. “of best” divides by the smallest of the column.",
        "Do caches distort this? Yes, in two ways. ncu flushes all caches before each pass, so each launch starts with"
        " cold caches: data that an earlier kernel left in L2 is read again from DRAM here, but not in the program."
        " And what fits in L2 is written back after the kernel has ended, so a kernel that writes little can show less"
        " DRAM traffic than it writes. Run ncu with --cache-control none to see warm caches, and compare the two.",
        "More blocks do not move more bytes by themselves: L1 bytes are what threads ask for, L2 bytes what misses L1,"
        " DRAM bytes what misses L2. Where DRAM grows with the number of blocks while L1 does not, blocks evict each"
        " other's data from L2.",
    ),
    "sectors": (
        "A request is one load or store that a warp executes with at least one active lane; a sector is 32 bytes. Of"
        " 32 lanes side by side, 2 bytes per lane need 2 sectors, 4 bytes 4, 8 bytes 8, 16 bytes 16; lanes that are"
        " each in a sector of their own need 32. ncu needs permission to count these; a probe does not.",
        "Expected sectors of a tensor = batch × heads × sequence length × head dimension × bytes / 32, and at most one"
        " sector per element. A kernel that writes it once, coalesced, stores exactly that many. “with row sums” adds"
        " one fp32 per row and head: attention made for training keeps the logarithm of each row's sum of"
        " exponentials. So the 33 280 sectors of 128 × 4096 bf16 in 32 heads are 32 768 of the result and 512 of the"
        " row sums.",
        "Next to expected: “equal”, “with row sums”, or a multiple of the expected sectors. Less: the kernel stores"
        " only a part of the tensor, or another one. More, up to one sector per element: its lanes store apart. Still"
        " more: it stores more than the tensor. “= probes” says that ncu and the probe counted the same, otherwise"
        " what differs.",
        "Accesses by cp.async or a tensor map (TMA) are in other counters: on Ampere and later, the loads and stores"
        " here can be fewer than the tensor needs.",
    ),
    "critical": (
        "The critical kernel does the matrix products, or takes most of the time. The lines below the table are the"
        " questions put to the kernels in turn, and how many are left after each. Tensor work and share are of the"
        " launches that the page Kernels keeps. Activity is"
        " sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed; below 5 % it says nothing, since kernels"
        " without matrix instructions reach that too. A probe counts the operations themselves, without permission.",
        "The type is that of most tensor operations, or else of most arithmetic (ffma, fadd, fmul are fp32, d… fp64,"
        " h… fp16). The metric …_op_ffma_pred_on.avg.peak_sustained and its like for dfma are constants of the GPU and"
        " cannot tell types apart; use …_pred_on.sum. Only operations of tensor cores, or the name, tell bf16 from"
        " fp16.",
        "Bound: compute or memory, whichever is closer to its peak; neither where both are below 60 %, which points to"
        " latency: too few blocks or warps, or waits. A small problem does much arithmetic per byte of DRAM because"
        " its data stay in L1 and L2.",
    ),
    "averages": (
        "Each metric of each kernel that counts, averaged over its launches in the measured iterations, after the"
        " warm-up; least and most show the spread. This is the number to quote where ncu collected the metric; where"
        " it did not, collect it with --metrics NAME or a section that has it.",
        "The mean of a percentage or a rate weights every launch alike, however long it took. Values are in base"
        " units: bytes, ns, hz, bytes/s.",
    ),
    "lines": (
        "Counters of every line of source, as means per launch, the line at which warps waited most first. Stalls are"
        " samples, “why” the most frequent reason. A request is one warp instruction that accesses global memory,"
        " sectors are those of 32 bytes that it touches, and ideal the fewest that its bytes fit into.",
        "With --trace, the page compares requests and sectors with those that a probe counted of the same line; ≠"
        " marks differences. Build with -lineinfo; tui-probe run counts accesses by line. A report has lines only of"
        " programs built with -lineinfo; --import-source yes of ncu adds their text.",
    ),
    "sass": (
        "The same counters of every instruction, in the order of the code; the offset is from the first instruction"
        " that was counted.",
        "With --trace, counts of a probe in SASS are compared by offset. A probe in PTX counts before the compiler"
        " moves, merges or repeats accesses: it is compared where a line has one access of a kind (load, store,"
        " atomic), in PTX and in SASS.",
    ),
    "nsys totals": (
        "Every kernel once, the one that takes most time first. Time is that of all its launches on all streams, and"
        " the share that of the time of all kernels shown; kernels that run next to each other count both. p99 is what"
        " 99 of 100 launches do not exceed: far above the median, few launches are slow.",
        "Enter shows the launches of a kernel one by one. Within a range the share is that of the time of the kernels"
        " in the range.",
    ),
    "nsys kernels": (
        "Every kernel on every stream, in order of start. “few blocks” marks a grid with fewer blocks than the GPU has"
        " SMs: the other SMs are idle while it runs, and fewer SMs also ask for less bandwidth, since each has only so"
        " many bytes in flight. More blocks than fit at the same time run in waves; beyond that, they add no"
        " bandwidth, and compete for L2.",
        "Blocks share L2 and DRAM. Threads of one block share its shared memory and can wait for each other at"
        " barriers; blocks cannot, except in a cluster or a cooperative launch. All warps of a block run on one SM.",
    ),
    "nsys ranges": (
        "A kernel belongs to an NVTX range if the call that launched it lies within the range, on the same thread. On"
        " each stream the range then runs from the start of its first kernel to the end of its last. Time that the"
        " host spends (sleeping, Python) does not count, and a range that launched nothing has no row. Indentation"
        " shows nesting.",
        "Enter shows the kernels in a range, each once with what its launches take; Enter on one of them shows these"
        " launches. --page totals --search NAME writes the same of all ranges that have NAME in their names.",
    ),
    "nsys sums": (
        "All ranges of a name together: calls are those that launched a kernel; time is that of their kernels on all"
        " streams, each kernel once. Mean and p99 are per call: 99 of 100 calls do not exceed p99. Where a range"
        " encloses one of its own name, as of a recursive function, both calls have the time of the inner kernels, so"
        " the mean times the calls exceeds the total. The share is that of the time of all kernels; shares add up to"
        " more than 100 % where ranges are within one another.",
        "Enter shows the kernels in the ranges of the name, each once.",
    ),
    "nsys gaps": (
        "Time between the end of one kernel and the start of the next on the same stream, longest first. “why” is what"
        " took most of it: a copy on the stream; the host, which launched only after the previous kernel had ended; or"
        " else the launch was in time and waited for the GPU itself (a microsecond is usual), another stream, or an"
        " event.",
    ),
    "nsys timeline": (
        "One row per stream with its kernels, and below it the NVTX ranges projected on it, outermost first. Where"
        " there is room, each is a bar with its name; elsewhere the height of a sign is the share of the cell's time"
        " in which a kernel ran. Bars of one name have one colour, which tells neighbours apart and nothing else.",
    ),
}
