"""Explanations of pages for the help screen and ``--explain``."""

from __future__ import annotations

from typing import Final

from tui_probe.pages.views import kind_of, names

_LIVE_PAGES: Final[dict[str, tuple[str, ...]]] = {
    "recent": (
        "The newest traces. found says of the kernel that takes most of the time what limits it and by how much, else"
        " what its probes say first, ! before what stands out; – where nothing was found, or the run is active. It is"
        " read once, and kept in your state folder.",
        "▶3 stands for three runs of one command, of which the newest is shown: c shows the others. Below the list is"
        " what the selected run found, and what is different from the run of the same command before it.",
    ),
    "form": (
        "What to start, and how. Paths in the command are completed: → takes what is shown behind the cursor. The last"
        " line is the command line that does the same.",
    ),
    "machine": (
        "What tui-probe doctor finds. ✘ is missing and ! needs a look, with what to do; ○ is optional, with what it"
        " would give.",
    ),
    "figures": (
        "Each value of both sides, and how it changed; better and worse say which direction is wanted. – means not"
        " measured.",
    ),
    "kernels": (
        "One row per kernel, that with most GPU time first where launches were timed, else in order of first launch."
        " 12 of 6 060, or 12/6.1k: that many launches were probed. Registers and spills are before→after probing; both"
        " sort by what the probe adds. Slowdown is probed time over original time; + marks times of launches with the"
        " probe. Enter opens a kernel: its findings and all its pages.",
        "finding is what the probe found in the newest result that was read, ! before what stands out, else why there"
        " is nothing. Where there is little room columns leave in this order: probe memory, time, spills, block, grid,"
        " trend, way, p99, slowdown, registers, median, launches, finding, share; bars need 100 columns. trend has the"
        " times of the last 8 launches that were timed, newest right, from 0 to the longest of them.",
        "Skipped: nothing to probe, as in kernels without PTX. Failed: the original ran instead. Excluded: left out by"
        " --kernel or --exclude. The page below says why, and what to do.",
    ),
    "kernel": (
        "The selected kernel: why it was probed or not and what to do about it, what the probe costs it, how it was"
        " launched. Enter opens its findings.",
    ),
    "process": ("process.log of the selected kernel: how it was pruned, probed and assembled.",),
    "events": (
        "event.log: what the hook driver did, one line per event, as it happens. [exec] marks launches, [probe]"
        " kernels being prepared, [mem] allocations, [mod] loaded modules.",
    ),
    "stdout": ("What the target writes to its standard output.",),
    "stderr": ("What the target writes to its standard error.",),
    "results": (
        "What the probe measured of each kernel, those with most GPU time first: a line for each of a few results,"
        " else the least, the median and the most of each value over some of them, evenly spread. A kernel is read"
        " again as its results double, and at the end. Enter on a kernel of the table shows single launches.",
    ),
    "gpu": (
        "The devices of the run; and while it runs the GPUs of this machine, with their load, memory, clocks and power"
        " in the last minutes.",
    ),
}
"""Explanations of the home screen, of pages of the live screen, and of values of a comparison."""


def explanation(name: str) -> tuple[str, ...]:
    """Explain how to read a page, a paragraph each; nothing of one that is not known."""
    return _LIVE_PAGES.get(name) or (kind_of(name).explanation if name in names() else ())
