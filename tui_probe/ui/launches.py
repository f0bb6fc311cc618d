"""Stepping through the launches of a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_probe.render.views.view import Source
    from tui_probe.trace.launches import Launch


def launch_rows(source: Source) -> list[int]:
    """The rows of a kernel's launches that can be stepped through: those with results, or all if there are none."""
    results = source.trace.results
    with_results = (results.launch(row) for row in source.kernel.result_rows)
    return sorted({row for row in with_results if row is not None}) or list(source.kernel.rows)


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
