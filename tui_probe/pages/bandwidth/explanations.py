"""How bandwidth is measured, and how to read its pages; a paragraph each."""

from __future__ import annotations

from typing import Final

CACHES: Final = (
    "Caches: memory is a buffer at least four times as large as L2, gone through end to end, so that no word is still"
    " in L2 at its next turn; L2 is a quarter of its size, read again and again past L1."
)
TIMES: Final = (
    "Medians of repeats after one that does not count; kernels and driver copies by events, pageable copies and the"
    " disk by the host's clock. A copy counts each byte twice, read and written. Spread: slowest less fastest."
)
BANDWIDTH: Final = (
    "Each figure is bytes moved over time. “of spec.” is beside what clock and width of the memory bus allow. Reading"
    " comes within some 5 to 10 % of that, the price of refreshing; writing and copying, which turn the bus around,"
    " stay further away.",
    "Do caches distort a test of bandwidth? They do wherever data come round again before other data have pushed them"
    " out: a buffer that fits in L2 shows L2's bandwidth from its second turn on. The line above the table says"
    " how far off that would be here. So memory is measured with a buffer of at least four times L2 that is gone"
    " through end to end, and small windows (few blocks) wander through it and never come back within a repeat.",
    "What do blocks share? All blocks share L2 and the memory behind it; those on one SM share its L1, of which shared"
    " memory is cut; a block has its shared memory to itself. So a card reaches its bandwidth only with blocks on all"
    " SMs, and on each SM only as many bytes are on their way as its blocks have room for.",
    "How near is my kernel? tui-probe roofline TRACES --bandwidth FILE sets probed kernels beside this measurement.",
)
SWEEP: Final = (
    "A row is a number of blocks, a column the bytes that each block has on their way from memory to its shared memory,"
    " a cell the bandwidth of the whole card. By Little's law bytes on their way = bandwidth × latency: a card reaches"
    " its bandwidth once enough are, however they are divided.",
    "More parallelism, or more contention? Up to the point where enough bytes are on their way, more blocks are more"
    " bandwidth: along a row, along a column, it grows in proportion. From there on, more blocks only queue; where"
    " their figures fall again, blocks get into each other's way in L2 and in the queues of memory, and that loss is"
    " the price of contention. The lines above the table say how large it is here.",
    "A kernel with few blocks can make up for it by having more in flight in each (deeper pipelines, wider loads, more"
    " warps), up to the room in shared memory or registers; a kernel with many blocks needs little in each.",
)
