"""How to read each page, and what it can and cannot answer; a paragraph each."""

from __future__ import annotations

from typing import Final

EXPLANATIONS: Final[dict[str, tuple[str, ...]]] = {
    "kernels": (
        "A row is a kernel with one grid and block, since one name may stand for several configurations. “kept” are the"
        " launches that count: those of the measured iterations after the warm-up. A program that is measured launches"
        " its kernels warm-up + runs times, or a multiple; that number is taken from --warmup and --runs, or found as"
        " the part of the sequence of launches that repeats.",
        "Blocks of a grid share global memory and L2; threads of a block share its shared memory and barriers, and all"
        " blocks on an SM its L1. A grid with fewer blocks than SMs leaves SMs idle: those rows are the first to look"
        " at when a kernel is slow and no unit is busy.",
    ),
    "metrics": (
        "A row is one value of one launch, in base units: bytes, ns, hz, bytes/s. The same name in two sections is two"
        " metrics. What ncu prints as n/a or no data is –.",
        "Names ending in peak_sustained are constants of the card, the same for every kernel: they tell what could be"
        " reached, not what was. Executed instructions are those ending in .sum.",
    ),
    "traffic": (
        "Bytes that one iteration moves, averaged over the measured iterations: DRAM dram__bytes.sum, L2"
        " lts__t_bytes.sum, L1 l1tex__t_bytes.sum. “of best” divides by the smallest of the column.",
        "Do caches distort this? Yes, in two ways. ncu flushes all caches before each pass, so each launch is seen with"
        " cold caches: data that an earlier kernel left in L2 is read again from DRAM here, and not in the program. And"
        " what fits in L2 is written back after the kernel has ended, so a kernel that writes little can show less DRAM"
        " traffic than it writes. Run ncu with --cache-control none to see warm caches, and compare both.",
        "More blocks do not move more bytes by themselves: L1 bytes are what threads ask for, L2 bytes what misses L1,"
        " DRAM bytes what misses L2. Where DRAM grows with the number of blocks while L1 does not, blocks evict each"
        " other's data from L2.",
    ),
    "sectors": (
        "A request is a load or store that a warp executed with at least one active lane; a sector is 32 bytes. 32"
        " lanes with 4 bytes each, side by side, need 4 sectors; 2 bytes need 2, 8 bytes 8, 16 bytes 16; each lane in a"
        " sector of its own 32. ncu counts these with permission; a probe counts the same without.",
        "Expected sectors of a tensor = batch × heads × sequence length × head dimension × bytes / 32, and at most one"
        " sector per element. A kernel that writes it once and coalesced stores exactly that. “with row sums” is that"
        " and one fp32 per row and head: attention made for training keeps the logarithm of each row's sum of"
        " exponentials. So 33 280 sectors for 128 × 4096 bf16 in 32 heads are 32 768 of the result and 512 of these.",
        "Beside expected: “equal”, “with row sums”, or how many times the expected sectors. Fewer is a kernel that"
        " stores only a part (or another tensor). Up to one sector per element: its lanes store apart. More: a kernel"
        " that stores more than the tensor. “= probes” says that ncu and the probe counted the same, else what"
        " differs.",
        "What goes by cp.async or a tensor map (TMA) is in other counters: on Ampere and later, loads and stores here"
        " can be fewer than the tensor needs.",
    ),
    "critical": (
        "The critical kernel does the matrix products, or takes the time. The lines below the table are the questions"
        " put to the kernels in turn, and how many are left after each. Activity is"
        " sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed; below 5 % it tells nothing, since kernels"
        " without any matrix instruction reach that much. A probe counts the operations themselves,"
        " without permission.",
        "The type is that of most tensor operations, else of most arithmetic (ffma, fadd, fmul are fp32, d… fp64, h…"
        " fp16). The metrics …_op_ffma_pred_on.avg.peak_sustained and its like for dfma are constants of the card, and"
        " cannot tell types apart; use …_pred_on.sum. bf16 and fp16 can only be told apart by operations of tensor"
        " cores, or by the name.",
        "Bound: compute or memory, whichever is nearer to its peak; neither where both are below 60 %, which is a"
        " matter of latency: too few blocks or warps, or waiting. A small problem has much arithmetic per byte of DRAM"
        " because its data stay in L1 and L2.",
    ),
    "averages": (
        "Each metric of each kernel that counts, averaged over its launches in the measured iterations, after the"
        " warm-up; least and most show how far they lie apart. Where ncu was told to collect it, this is the number to"
        " quote; where it was not, collect it with --metrics NAME or a section that has it.",
        "A mean of percentages or rates is that of launches, each counting alike, however long it took. Values are in"
        " base units: bytes, ns, hz, bytes/s.",
    ),
    "nsys kernels": (
        "Every kernel on every stream, in the order of start. “few blocks” marks a grid with fewer blocks than the GPU"
        " has SMs: the other SMs have nothing to do while it runs, and fewer SMs also ask for less bandwidth, since"
        " each has only so many bytes in flight. More blocks than fit at once run in waves; beyond that, they add no"
        " bandwidth, and compete for L2.",
        "Blocks share L2 and DRAM. Threads of one block share its shared memory and can wait for each other at"
        " barriers; blocks cannot, except in a cluster or a cooperative launch. All warps of a block run on one SM.",
    ),
    "nsys ranges": (
        "A kernel belongs to an NVTX range if the call that launched it lies within the range, on the same thread. On"
        " each stream the range then runs from the start of its first kernel to the end of its last: time that the host"
        " spends (sleeping, Python) is not in it, and a range that launched nothing has no row. The indent is the"
        " nesting.",
    ),
    "nsys gaps": (
        "Time between the end of one kernel and the start of the next on the same stream, the longest first. “why” is"
        " what took most of it: a copy on the stream; or the host, whose launching call came only after the end of the"
        " kernel before; otherwise the launch was in time and waited, for the GPU itself (a microsecond is usual),"
        " another stream, or an event.",
    ),
    "nsys timeline": (
        "One row per stream with its kernels, and below it the NVTX ranges projected on it, the outermost first. Where"
        " there is room, each is a bar with its name; else the height of a sign is the part of the cell's time in which"
        " a kernel ran.",
    ),
}
