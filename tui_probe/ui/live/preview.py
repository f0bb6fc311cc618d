"""Preview of the selected kernel: small charts, with findings or its worst lines next to them where there is space."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tui_probe.draw.spans import side_by_side, wrap
from tui_probe.ui import keys
from tui_probe.ui.layout import PREVIEW_ROWS
from tui_probe.ui.live.results import computing_line
from tui_probe.ui.views.view import TextView

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.pages.all_lines import KernelLine
    from tui_probe.pages.kernel_detail import Chart
    from tui_probe.trace.model import Trace
    from tui_probe.ui.live.snapshots import ProcessView
    from tui_probe.ui.views.view import Desk
    from tui_probe.verdicts.findings import ResultFindings
    from tui_probe.verdicts.kernel_snapshot import KernelSnapshot

GAP = 2
MIN_CELLS = 30
"""Cells from which on there is room for words."""
Known = tuple[int, int, bool]
"""Results and timed launches of a kernel, and whether its process runs."""


def doubled(now: Known, before: Known) -> bool:
    """Return whether there is enough new data to draw charts again: rarely while a program runs, and at its end."""
    if not now[2]:
        return now != before
    return any(new > 0 and new >= 2 * old for new, old in zip(now[:2], before[:2], strict=True))


Contents = tuple["tuple[Chart, ...]", "Sequence[KernelLine]"]
"""Charts, and measured lines, the worst first."""


def read(trace: Trace, index: int) -> Contents:
    """Read the charts and lines of a kernel; imported with the first of them, since it brings the analyses."""
    from tui_probe.pages.all_lines import measured_lines
    from tui_probe.pages.kernel_detail import preview_charts

    kernel = trace.kernels[index]
    return preview_charts(trace, kernel), measured_lines(trace, kernels=[kernel]).lines


class Preview(TextView):
    """Follows the selection once it rests for a frame: stepping through the table sends no charts."""

    def __init__(
        self,
        desk: Desk,
        name: str,
        findings_of: Callable[[int], Sequence[ResultFindings] | None],
        limits_of: Callable[[int], Sequence[str]],
        *,
        ascii_only: bool,
    ) -> None:
        super().__init__(desk, name)
        self.findings_of, self.limits_of, self.ascii_only = findings_of, limits_of, ascii_only
        self.speaks = True
        """Show findings next to the charts: not if the page below has the same text."""
        self._process: ProcessView | None = None
        self._selected: int | None = None
        self._of: tuple[Trace, int] | None = None
        """The kernel that is shown."""
        self._known: Known = (0, 0, True)
        self.charts: tuple[Chart, ...] = ()
        self.measured: Sequence[KernelLine] = ()
        self.is_tall = False
        """True once there was more to show than its lowest height has room for. It stays so: the panes would move with
        the selection."""

    def update(self, process: ProcessView | None, kernel: KernelSnapshot | None, *, running: bool) -> None:
        """Read new data of the selected kernel, once per frame."""
        if not self.height:
            return
        rests = kernel is not None and kernel.index == self._selected
        self._selected = None if kernel is None else kernel.index
        if not rests or kernel is None or process is None or process.trace is None:
            return
        trace = process.trace
        another = self._of is None or self._of[0] is not trace or self._of[1] != kernel.index
        known = (kernel.results, len(trace.kernels[kernel.index].samples), running)
        if another or doubled(known, self._known):
            self._known = known
            job = partial(read, trace, kernel.index)
            self.desk.analyses.submit((self, "charts"), job, partial(self._take, trace, kernel.index))
        elif not another:
            self.changed()  # words may have come

    def _take(self, trace: Trace, index: int, contents: Contents) -> None:
        self._of = trace, index
        self.charts, self.measured = contents
        self.changed()

    def draw(self, width: int, height: int) -> list[Line]:
        """Return as many charts as fit, then findings, or lines where those are on the page below."""
        if self._of is None:
            return super().draw(width, height)
        from tui_probe.pages.kernel_detail import CHART_FRAME_ROWS, CHART_ROWS, chart_lines

        lines: list[Line] = []
        used, cells = 0, self._cells(width)
        for chart in self._charts_to_draw():
            if used + 1 + cells <= width:
                rows = max(CHART_ROWS, height - CHART_FRAME_ROWS)
                drawn = [((" ", ""), *line) for line in chart_lines(chart, cells, rows, ascii_only=self.ascii_only)]
                lines = side_by_side(lines, drawn, used - GAP) if used else list(drawn)
                used += 1 + cells + GAP
        texts = self._text_lines(width - used) if width - used >= MIN_CELLS else []
        self.is_tall = self.is_tall or used > 0 or len(texts) > PREVIEW_ROWS
        if texts:
            lines = side_by_side(lines, texts[:height], used - GAP) if used else texts[:height]
        return lines or self._empty(width)

    def _charts_to_draw(self) -> Sequence[Chart]:
        """Return the charts, without constant ones where lines of the kernel can have their room."""
        return [chart for chart in self.charts if not (self.measured and chart.is_constant)]

    def _empty(self, width: int) -> list[Line]:
        """Say why there is no chart, so that the panel does not look unfinished."""
        from tui_probe.probekit.registry import probe_names_where

        assert self._of is not None
        option = next(iter(probe_names_where(lambda probe: probe.timeline is not None)), "")
        text = (
            f"#{self._of[1]}: no times of blocks or launches to draw; press {keys.key_of('again')} to run -p {option}"
        )
        return [((f" {part}", "dim"),) for part in wrap(text, max(20, width - 2))]

    def _cells(self, width: int) -> int:
        """Return the columns of each chart: more than the minimum if no text needs the room."""
        from tui_probe.pages.kernel_detail import CHART_CELLS, CHART_COLUMNS

        if self.speaks or self.measured or not self.charts:
            return CHART_CELLS
        return max(CHART_CELLS, min(CHART_COLUMNS, width // len(self.charts) - 1 - GAP))

    def _text_lines(self, cells: int) -> list[Line]:
        from tui_probe.pages.all_lines import ranked_lines
        from tui_probe.pages.findings_page import kernel_finding_lines, limiter_lines
        from tui_probe.pages.views import page_key_texts

        assert self._of is not None
        index = self._of[1]
        if not self.speaks:
            return ranked_lines(self.measured, cells)
        results = self.findings_of(index)
        if results is None and self._known[0]:
            return [computing_line()]
        findings = kernel_finding_lines(results or (), cells, page_key_texts())
        lines = [*limiter_lines(self.limits_of(index), cells), *findings]
        lines = lines or ranked_lines(self.measured, cells)
        if lines or self.charts:
            return lines
        return [((f" #{self._of[1]}: no results yet, and too few timed launches", "dim"),)]
