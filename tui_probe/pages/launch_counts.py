"""How many launches there were and how many of them were probed, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.trace.launches import CAPTURED

if TYPE_CHECKING:
    from tui_probe.trace.model import Kernel, Trace


def launches_in_words(launches: int, probed: int) -> str:
    """``12 of 6 060 launches probed`` where only some were, else ``8 launches (8 probed)``."""
    if 0 < probed < launches:
        return f"{units.count(probed)} of {units.counted(launches, 'launch')} probed"
    return f"{units.counted(launches, 'launch')} ({units.count(probed)} probed)"


def launches_told(launches: int, probed: int) -> str:
    """``12 of 6 060 launches probed`` where only some were, else ``8 launches``."""
    return launches_in_words(launches, probed) if 0 < probed < launches else units.counted(launches, "launch")


def probed_of(launches: int, probed: int) -> str:
    """``12 of 6 060`` where only some were probed, else how many there are."""
    return f"{units.count(probed)} of {units.count(launches)}" if 0 < probed < launches else units.count(launches)


def probed_of_short(launches: int, probed: int) -> str:
    """The same in at most nine cells: ``12/6.1k``."""
    whole = units.short_count(launches)
    return f"{units.short_count(probed)}/{whole}" if 0 < probed < launches else whole


def left_out(kernel: Kernel) -> str:
    """That some launches of a kernel have no lines of their own, which the list of them cannot show; "" if all have."""
    rest = kernel.launches - kernel.launches_recorded
    if rest <= 0:
        return ""
    shown = units.count(kernel.launches_recorded)
    return f"{shown} of {units.counted(kernel.launches, 'launch')}, the others are only counted"


def not_recorded(trace: Trace, number: int) -> str | None:
    """Why launch ``number`` cannot be shown though there was one, and which of its kernel can; None if it can."""
    passed = trace.passed.find(number)
    if passed is None:
        return None
    kernel = None if passed.kernel is None else trace.kernels.get(passed.kernel)
    of = "" if kernel is None else f" of kernel #{kernel.index}"
    if passed.reason.code == CAPTURED:
        return f"launch {number}{of} was captured into a graph and did not run by itself"
    near = [] if kernel is None else _nearest(trace, kernel, number)
    instead = f"; recorded next to it: {' and '.join(f'@{each}' for each in near)}" if near else ""
    return f"launch {number}{of} was counted, not recorded ({passed.reason.text}){instead}"


def _nearest(trace: Trace, kernel: Kernel, number: int) -> list[int]:
    """The recorded launches of the kernel before and after it."""
    numbers = [launch.number for launch in (trace.launches[row] for row in kernel.rows) if launch.number is not None]
    before = [each for each in numbers if each < number]
    after = [each for each in numbers if each > number]
    return [*([max(before)] if before else []), *([min(after)] if after else [])]
