"""How bandwidth is measured, and how to read its pages; a paragraph each."""

from __future__ import annotations

from typing import Final

CACHES: Final = (
    "Caches: the buffer for memory is at least four times as large as L2 and is read end to end, so that no word is"
    " still in L2 when its turn comes again. The buffer for L2 is a quarter of L2, read again and again past L1."
)
TIMES: Final = (
    "Figures are medians of repeats, after one that does not count. Events time kernels and driver copies; the host's"
    " clock times pageable copies and the disk. A copy counts each byte twice, read and written. Spread is the slowest"
    " minus the fastest."
)
BANDWIDTH: Final = (
    "Each figure is bytes moved over time. “of spec.” compares it with what clock and width of the memory bus allow."
    " Reads come within some 5 to 10 % of that, the cost of DRAM refresh; writes and copies, which turn the bus"
    " around, stay further below.",
    "Do caches distort a bandwidth test? Yes, wherever data are used again before other data have evicted them: a"
    " buffer that fits in L2 shows L2's bandwidth from its second use on. The line above the table says how large that"
    " error would be here. So memory is measured with a buffer of at least four times L2, read end to end; small"
    " windows (few blocks) move through it and never come back within a repeat.",
    "What do blocks share? All blocks share L2 and the memory behind it; the blocks on one SM share its L1, which"
    " contains shared memory; each block has its part of shared memory to itself. So a GPU reaches its bandwidth only"
    " with blocks on all SMs, and each SM has only as many bytes in flight as its blocks have room for.",
    "How close is my kernel to these limits? tui-probe roofline TRACES --bandwidth FILE shows probed kernels beside"
    " this measurement.",
)
SWEEP: Final = (
    "A row is a number of blocks, a column the bytes that each block has in flight from memory to its shared memory, a"
    " cell the bandwidth of the whole GPU. By Little's law bytes in flight = bandwidth × latency: a GPU reaches its"
    " bandwidth once enough bytes are in flight, however they are divided among blocks.",
    "More parallelism, or more contention? Until enough bytes are in flight, bandwidth grows in proportion to the"
    " number of blocks and to the bytes of each. From there on, more blocks only queue. Where bandwidth falls again,"
    " blocks obstruct each other in L2 and in the queues of memory: that loss is the price of contention. The lines"
    " above the table say how large it is here.",
    "A kernel with few blocks can make up for that with more bytes in flight per block (deeper pipelines, wider loads,"
    " more warps), as far as shared memory and registers allow; a kernel with many blocks needs little per block.",
)
