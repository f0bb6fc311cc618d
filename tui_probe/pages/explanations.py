"""What each page shows and how to read it, a few lines each: on top of the page of keys, and for ``--explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.draw.spans import wrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EXPLANATIONS: Final[dict[str, tuple[str, ...]]] = {
    "summary": (
        "What was found comes first: each line names the page that shows it, and ! marks what costs time. Then what the"
        " probe costs the kernel in registers, spills and occupancy, and what another run would answer.",
        "“original” is the kernel as it came, “probed” the one that ran in its place. – was not measured. Slowdown is"
        " probed time over original time, of launches that ran both (--benchmark).",
    ),
    "ptx": (
        "The PTX of the kernel: probed as it ran, pruned as the engine read it (this kernel alone), original as it came"
        " in the image. Where other pages name a line of PTX, it is one of the pruned text; the probed text has numbers"
        " of its own.",
    ),
    "diff": (
        "Left the pruned PTX, right the probed: + lines were added, and say by which part of the probe. Nothing of the"
        " kernel itself changes but the registers that are declared. Unchanged runs are folded.",
    ),
    "sass": (
        "The machine code of both kernels as nvdisasm prints it, and instructions counted by class. The assembler"
        " schedules anew, so that more differs here than was added to the PTX.",
    ),
    "log": (
        "process.log: how the kernel was found, pruned, probed and assembled, with ptxas' own words. A kernel that"
        " failed says why here; its original ran instead.",
    ),
    "launches": (
        "A row a launch: grid, block, parameters as the kernel got them, stream, memory of the probe, and the result"
        " file. Launches are numbered through the process from 0. Passed through: the original ran, and why.",
    ),
    "dmat": (
        "Time runs to the right, addresses run down: a band for each tensor or allocation, gaps between them left out."
        " Each cell counts the accesses of its cycles and bytes; more dots, or a higher shade, are more accesses.",
        "Sectors a request: a warp's load or store asks for 32-byte sectors. 32 lanes of 4 bytes side by side touch 4;"
        " each lane in a sector of its own 32. “used” is the part of the moved bytes that the lanes asked for.",
        "A flat row is one place used again and again, a diagonal walks through memory, a column touches many addresses"
        " at once. Below stands what is under the cursor.",
    ),
    "lines": (
        "A row an instruction of pruned.ptx with the line of source that it came from, the one that matters most first."
        " The columns are what the probe measured; – was not.",
        "Sectors a request: 4 for 4 bytes a lane side by side, 8 for 8, 16 for 16; more than the bytes of a lane is"
        " more than needed. Degree: passes of shared memory over the fewest possible. Lanes: of 32 in a warp.",
    ),
    "source": (
        "The lines of source that the PTX came from, from the copies that were made while the program ran; lines that"
        " no code came from are set back. Beside a line stands what the probe measured of all the PTX it became: sums,"
        " and ratios of sums.",
    ),
    "timeline": (
        "A row an SM, a slot of an SM (which holds a block at a time), or a warp; time runs to the right. Height is the"
        " share of slots that run a block; where there is room, each block is a bar with its number.",
        "! marks what lasts far longer than the others, – an SM that ran nothing, T the start of the tail: from there"
        " on some SM has nothing left to run. Gaps in a slot are what scheduling the next block costs.",
        "SMs count with clocks of their own: how well they are put beside each other is told below the axis.",
    ),
    "blocks": (
        "Where the cycles of a slot went: running a block, scheduling (the gap to the next one), idle at the start and"
        " the end. Percentiles and the curve are of block times: a step is blocks that are alike.",
    ),
    "progress": (
        "A line a warp: time to the right, iterations of the main loop upwards. Parallel lines are warps at one pace; a"
        " flat piece waits; lines that lie lower or end later fall behind. ! names those that stand out.",
    ),
    "latency": (
        "What the probe adds outside the kernel: clearing its records before, copying them back after, measured by"
        " --benchmark. Below it what waits inside: at barriers, or between blocks.",
    ),
    "memory": (
        "Bytes that executed instructions asked for, by launch, whatever the caches answered. Divided by the time of"
        " the original it is the bandwidth that the kernel asks for, not what DRAM moves.",
    ),
    "sectors": (
        "A request is a load or store that a warp executed with an active lane; a sector 32 bytes. 4 sectors a request"
        " are 4 bytes a lane side by side; 32 are a lane in a sector of its own. ncu counts the same.",
    ),
    "figures": (
        "Every figure of both sides and its change; better and worse say which way is wanted. – was not measured.",
    ),
    "kernels": (
        "A row a kernel, in the order of its first launch. Registers and spills are before→after probing; slowdown is"
        " probed over original time. Enter shows what was found in a kernel and all its pages.",
        "Skipped: nothing to probe, as in kernels without PTX. Failed: the original ran instead. Filtered: left out by"
        " --kernel or --filter. The page below says why, and what to do.",
    ),
    "kernel": (
        "The selected kernel: why it was probed or not and what to do, what the probe costs it, how it was launched."
        " Enter shows what was found in it.",
    ),
    "process": ("process.log of the selected kernel: how it was pruned, probed and assembled.",),
    "events": (
        "event.log: what the hook driver did, a line an event, as it happens. [exec] are launches, [probe] kernels that"
        " are prepared, [mem] allocations, [mod] modules that were loaded.",
    ),
    "stdout": ("What the target writes to its standard output.",),
    "stderr": ("What the target writes to its standard error.",),
    "results": ("A line a result, as it is saved: the launch, its kernel, and what the probe measured in one line.",),
    "gpu": ("The GPUs of this machine now, and their load, memory, clocks and power in the last minutes.",),
}
"""Of views by their name, and of the pages of the live screen by theirs."""


def paragraphs(texts: Sequence[str], cells: int) -> Iterator[str]:
    """Texts in lines of at most ``cells`` cells, a blank line before each."""
    for text in texts:
        yield ""
        yield from wrap(text, cells)


def named(title: str, about: str) -> str:
    """``DMAT: memory accesses over time``: the title of a view and the first clause of what it is about."""
    ends = [place for sign in (",", ":", ";") if (place := about.find(sign)) > 0]
    return f"{title}: {about[: min(ends, default=len(about))]}"
