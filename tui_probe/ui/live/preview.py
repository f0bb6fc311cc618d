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
    from tui_probe.ui.views.view import ViewHost
    from tui_probe.verdicts.findings import ResultFindings
    from tui_probe.verdicts.kernel_snapshot import KernelSnapshot

GAP = 2
MIN_CELLS = 30
"""Cells from which on there is room for words."""
DataAmount = tuple[int, int, bool]
"""Results and timed launches of a kernel, and whether its process runs."""


def has_doubled(amount: DataAmount, previous_amount: DataAmount) -> bool:
    """Return whether there is enough new data to draw charts again: rarely while a program runs, and at its end."""
    if not amount[2]:
        return amount != previous_amount
    return any(
        count > 0 and count >= 2 * previous_count
        for count, previous_count in zip(amount[:2], previous_amount[:2], strict=True)
    )


Contents = tuple["tuple[Chart, ...]", "Sequence[KernelLine]"]
"""Charts, and measured lines, the worst first."""


def read_contents(trace: Trace, index: int) -> Contents:
    """Read the charts and lines of a kernel; imported with the first of them, since it brings the analyses."""
    from tui_probe.pages.all_lines import measured_lines
    from tui_probe.pages.kernel_detail import preview_charts

    kernel = trace.kernels[index]
    return preview_charts(trace, kernel), measured_lines(trace, kernels=[kernel]).lines


class Preview(TextView):
    """Follows the selection once it rests for a frame: stepping through the table sends no charts."""

    def __init__(
        self,
        view_host: ViewHost,
        name: str,
        findings_of: Callable[[int], Sequence[ResultFindings] | None],
        limits_of: Callable[[int], Sequence[str]],
        *,
        ascii_only: bool,
    ) -> None:
        super().__init__(view_host, name)
        self.findings_of, self.limits_of, self.ascii_only = findings_of, limits_of, ascii_only
        self.shows_findings = True
        """Show findings next to the charts: not if the page below has the same text."""
        self._process: ProcessView | None = None
        self._selected_index: int | None = None
        self._shown_kernel: tuple[Trace, int] | None = None
        """The kernel that is shown."""
        self._data_amount: DataAmount = (0, 0, True)
        self.charts: tuple[Chart, ...] = ()
        self.kernel_lines: Sequence[KernelLine] = ()
        self.is_tall = False
        """True once there was more to show than its lowest height has room for. It stays so: the panes would move with
        the selection."""

    def update(self, process: ProcessView | None, kernel: KernelSnapshot | None, *, is_running: bool) -> None:
        """Read new data of the selected kernel, once per frame."""
        if not self.height:
            return
        is_resting = kernel is not None and kernel.index == self._selected_index
        self._selected_index = None if kernel is None else kernel.index
        if not is_resting or kernel is None or process is None or process.trace is None:
            return
        trace = process.trace
        is_other_kernel = (
            self._shown_kernel is None or self._shown_kernel[0] is not trace or self._shown_kernel[1] != kernel.index
        )
        data_amount = (kernel.results, len(trace.kernels[kernel.index].samples), is_running)
        if is_other_kernel or has_doubled(data_amount, self._data_amount):
            self._data_amount = data_amount
            job = partial(read_contents, trace, kernel.index)
            self.view_host.analyses.submit((self, "charts"), job, partial(self._take, trace, kernel.index))
        elif not is_other_kernel:
            self.request_redraw()  # words may have come

    def _take(self, trace: Trace, index: int, contents: Contents) -> None:
        self._shown_kernel = trace, index
        self.charts, self.kernel_lines = contents
        self.request_redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """Return as many charts as fit, then findings, or lines where those are on the page below."""
        if self._shown_kernel is None:
            return super().draw(width, height)
        from tui_probe.pages.kernel_detail import CHART_FRAME_ROWS, CHART_ROWS, chart_lines

        lines: list[Line] = []
        used_cells, cells = 0, self._cells(width)
        for chart in self._charts_to_draw():
            if used_cells + 1 + cells <= width:
                rows = max(CHART_ROWS, height - CHART_FRAME_ROWS)
                chart_part = [
                    ((" ", ""), *line) for line in chart_lines(chart, cells, rows, ascii_only=self.ascii_only)
                ]
                lines = side_by_side(lines, chart_part, used_cells - GAP) if used_cells else list(chart_part)
                used_cells += 1 + cells + GAP
        texts = self._text_lines(width - used_cells) if width - used_cells >= MIN_CELLS else []
        self.is_tall = self.is_tall or used_cells > 0 or len(texts) > PREVIEW_ROWS
        if texts:
            lines = side_by_side(lines, texts[:height], used_cells - GAP) if used_cells else texts[:height]
        return lines or self._no_chart_lines(width)

    def _charts_to_draw(self) -> Sequence[Chart]:
        """Return the charts, without constant ones where lines of the kernel can have their room."""
        return [chart for chart in self.charts if not (self.kernel_lines and chart.is_constant)]

    def _no_chart_lines(self, width: int) -> list[Line]:
        """Say why there is no chart, so that the panel does not look unfinished."""
        from tui_probe.probekit.registry import probe_names_where

        assert self._shown_kernel is not None
        option = next(iter(probe_names_where(lambda probe: probe.timeline is not None)), "")
        index, key = self._shown_kernel[1], keys.key_of("again")
        text = f"#{index}: no times of blocks or launches to draw; press {key} to run -p {option}"
        return [((f" {part}", "dim"),) for part in wrap(text, max(20, width - 2))]

    def _cells(self, width: int) -> int:
        """Return the columns of each chart: more than the minimum if no text needs the room."""
        from tui_probe.pages.kernel_detail import CHART_CELLS, CHART_COLUMNS

        if self.shows_findings or self.kernel_lines or not self.charts:
            return CHART_CELLS
        return max(CHART_CELLS, min(CHART_COLUMNS, width // len(self.charts) - 1 - GAP))

    def _text_lines(self, cells: int) -> list[Line]:
        from tui_probe.pages.all_lines import ranked_lines
        from tui_probe.pages.findings_page import kernel_finding_lines, limiter_lines
        from tui_probe.pages.views import page_key_texts

        assert self._shown_kernel is not None
        index = self._shown_kernel[1]
        if not self.shows_findings:
            return ranked_lines(self.kernel_lines, cells)
        results = self.findings_of(index)
        if results is None and self._data_amount[0]:
            return [computing_line()]
        findings = kernel_finding_lines(results or (), cells, page_key_texts())
        lines = [*limiter_lines(self.limits_of(index), cells), *findings]
        lines = lines or ranked_lines(self.kernel_lines, cells)
        if lines or self.charts:
            return lines
        return [((f" #{self._shown_kernel[1]}: no results yet, and too few timed launches", "dim"),)]
