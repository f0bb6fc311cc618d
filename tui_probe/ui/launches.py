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
    """Which launch is shown, and of how many: ``launch 1 of 8 (#3 of the process), the only one with a result``.

    The place among the launches of the kernel counts from 1, the number in the process from 0. ``brief``: these alone.
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
    place = "" if number is None else f" (#{number} of the process)"
    if kernel.launches == 1:
        return f"the only launch{place}"
    alone = saved == 1 and row == source.trace.results.launch(kernel.result_rows[0])
    only = ", the only one with a result" if alone and not brief else ""
    nth = bisect_left(kernel.rows, row) + 1
    if kernel.launches_recorded < kernel.launches:
        recorded = f"recorded launch {nth} of {units.count(kernel.launches_recorded)}"
        return f"{recorded}{place}, {units.count(kernel.launches)} in all{only}"
    return f"launch {nth} of {units.count(kernel.launches)}{place}{only}"


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
