"""Stepping through the launches of a kernel."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING

from tui_probe.draw import units

if TYPE_CHECKING:
    from tui_probe.probekit.kind import Source
    from tui_probe.trace.launches import Launch
    from tui_probe.ui.keys import Key
    from tui_probe.ui.views.kernels import KernelTable

NO_LATER = "no later launch has a result"
NO_EARLIER = "no earlier launch has a result"


def step_applies(row: Key, source: Source | None, table: KernelTable) -> bool:
    """Is there a kernel or launch to step to, if a key does that?"""
    step = -1 if row.id.startswith("previous") else 1
    if row.id in ("previous_kernel", "next_kernel"):
        return bool(table.shown) and 0 <= table.place + step < len(table.shown)
    if row.id in ("previous_launch", "next_launch"):
        return source is not None and next_launch(source, step) is not None
    return True


def has_several(source: Source | None) -> bool:
    """Are there several launches to step through? Costs nothing, however many there are."""
    return source is not None and (len(source.kernel.result_rows) or source.kernel.launches) > 1


def with_newest(source: Source) -> Source:
    """The same with the launch whose result is the newest now, if none was chosen; later ones do not change that."""
    row = _newest(source)
    return source if source.launch is not None or row is None else replace(source, launch=source.trace.launches[row])


def newer_result(source: Source) -> bool:
    """Has a later launch than the one at hand a result?"""
    row = _newest(source)
    return source.launch is not None and row is not None and row > source.launch.row


def _newest(source: Source) -> int | None:
    rows = source.kernel.result_rows
    return source.trace.results.launch(rows[-1]) if rows else None


def launch_rows(source: Source) -> list[int]:
    """The rows of a kernel's launches that can be stepped through: those with results, or all if there are none."""
    results = source.trace.results
    with_results = (results.launch(row) for row in source.kernel.result_rows)
    return sorted({row for row in with_results if row is not None}) or list(source.kernel.rows)


def launch_words(source: Source, *, brief: bool = False) -> str:
    """Which launch is shown, and of how many: ``launch 3 (1st of 8 of this kernel), the only one with a result``.

    The number is what pages call the launch and what ``KERNEL@LAUNCH`` takes: it counts from 0 through the process. The
    place among the launches of the kernel counts from 1. ``brief``: these alone.
    """
    kernel, saved = source.kernel, len(source.kernel.result_rows)
    if not kernel.launches:
        return "no launch"
    if not saved and source.launch is None:
        return "1 launch, no result" if kernel.launches == 1 else f"{units.count(kernel.launches)} launches, no result"
    row = source.trace.results.launch(kernel.result_rows[-1]) if source.launch is None else source.launch.row
    if row is None:
        return f"newest result of {units.counted(kernel.launches, 'launch')}"
    number = source.trace.launches[row].number
    if kernel.launches == 1:
        return "the only launch" if number is None else f"launch {number} (the only one of this kernel)"
    alone = saved == 1 and row == source.trace.results.launch(kernel.result_rows[0])
    only = ", the only one with a result" if alone and not brief else ""
    recorded = " recorded" if kernel.launches_recorded < kernel.launches else ""
    place = f"{units.ordinal(bisect_left(kernel.rows, row) + 1)}{recorded} of {units.count(kernel.launches)}"
    return f"{place} launches{only}" if number is None else f"launch {number} ({place} of this kernel){only}"


def next_launch(source: Source, step: int) -> Launch | None:
    """The launch ``step`` places from the one at hand (the newest, if none was chosen); None beyond the ends."""
    rows = launch_rows(source)
    here = len(rows) - 1
    if source.launch is not None:
        here = next((place for place in range(len(rows) - 1, -1, -1) if rows[place] <= source.launch.row), 0)
    place = here + step
    if not 0 <= place < len(rows):
        return None
    launch: Launch = source.trace.launches[rows[place]]
    return launch
