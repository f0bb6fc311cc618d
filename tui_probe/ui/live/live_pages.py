"""Pages of the live screen: the kernel, the GPUs, logs, results, and tables of the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.pages.kernel_detail import detail_lines
from tui_probe.ui.live.gpus import GpuView, device_lines, ended_lines, gpu_lines
from tui_probe.ui.live.results import ResultsView
from tui_probe.ui.views.log import LogView
from tui_probe.ui.views.table_views import AllLinesView, GraphsView, GrowingView, RangesView
from tui_probe.ui.views.view import TextView
from tui_probe.ui.widgets.bars import NUMBERED, Tab, keys_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.trace.event_types import Device
    from tui_probe.ui.live.feed import ProcessView, Snapshot
    from tui_probe.ui.views.view import Desk, PaneView
    from tui_probe.verdicts.findings import ResultFindings
    from tui_probe.verdicts.kernel_snapshot import KernelSnapshot

READING_TEXT = "reading the folder of this kernel"


def _finding_lines(each: ResultFindings, cells: int) -> list[Line]:
    """The findings of a probe; imported with the first of them, since it brings the analyses."""
    from tui_probe.pages.findings_page import findings_lines

    return findings_lines(each, cells)


class KernelPage(TextView):
    """The selected kernel: why it was probed or not, what to do, what was found, what the probe costs it."""

    def __init__(self, desk: Desk, name: str, findings_of: Callable[[int], Sequence[ResultFindings]]) -> None:
        super().__init__(desk, name, "no kernel is selected")
        self.findings_of = findings_of
        """Function that returns what each probe found in the kernel of an index, from the results read so far."""
        self.kernel: KernelSnapshot | None = None

    def show_kernel(self, kernel: KernelSnapshot | None) -> None:
        """Show a kernel; the place stays, also for another one."""
        self.kernel = kernel
        self._make_lines()
        self.changed()

    def resize(self, width: int, height: int) -> None:
        """Wrap for another width."""
        super().resize(width, height)
        self._make_lines()

    def _make_lines(self) -> None:
        cells = max(20, self.width)
        if self.kernel is None:
            self.lines = []
        else:
            results = self.findings_of(self.kernel.index)
            findings = [line for result in results for line in _finding_lines(result, cells)]
            self.lines = (
                detail_lines(self.kernel, cells, found=findings)
                if self.kernel.read
                else [((f" {READING_TEXT}", "dim"),)]
            )


class GpuPage(TextView):
    """The GPUs of a run, and while it runs their load in the last minutes."""

    def __init__(self, desk: Desk, name: str, *, ascii_only: bool) -> None:
        super().__init__(desk, name)
        self.ascii_only = ascii_only
        self.gpus = GpuView()
        self.devices: Sequence[Device] = ()
        self.running = self.simulated = False

    def show_gpus(self, gpus: GpuView, devices: Sequence[Device], *, running: bool, simulated: bool) -> None:
        """Show the devices that the trace names, and the newest samples."""
        self.gpus, self.devices, self.running, self.simulated = gpus, devices, running, simulated
        self._make_lines()
        self.changed()

    def resize(self, width: int, height: int) -> None:
        """Draw charts for another width."""
        super().resize(width, height)
        self._make_lines()

    def _make_lines(self) -> None:
        cells = max(20, self.width)
        self.lines = device_lines(self.devices, cells, simulated=self.simulated)
        if not self.simulated:
            self.lines += (
                gpu_lines(self.gpus, cells, ascii_only=self.ascii_only) if self.running else ended_lines(cells)
            )


TABS = (
    Tab("kernel", "Kernel", "Kernel"),
    Tab("process", "process.log", "Log"),
    Tab("events", "event.log", "Events"),
    Tab("stdout", "stdout", "Out"),
    Tab("stderr", "stderr", "Err"),
    Tab("results", "Results", "Results"),
    Tab("gpu", "GPU", "GPU"),
)
RANGES = Tab("ranges", "Ranges", "Ranges", number=8)
GRAPHS = Tab("graphs", "Graphs", "Graphs", number=9)
LINES = Tab("lines", "Lines", "Lines", number=NUMBERED)
PAGE_KEYS = keys_of((*TABS, RANGES, GRAPHS, LINES))


class LivePages:
    """One of them is visible: ``current``."""

    def __init__(self, desk: Desk, findings_of: Callable[[int], Sequence[ResultFindings]], *, ascii_only: bool) -> None:
        self.current = TABS[0].id
        self.kernel_page = KernelPage(desk, "kernel", findings_of)
        self.process_log = LogView(desk, "process", follow=False)
        self.event_log = LogView(desk, "events")
        self.outputs = {name: LogView(desk, name, styled=False) for name in ("stdout", "stderr")}
        self.results = ResultsView(desk, "results")
        self.gpu_page = GpuPage(desk, "gpu", ascii_only=ascii_only)
        self.ranges = RangesView(desk, RANGES.id)
        self.graphs = GraphsView(desk, GRAPHS.id)
        self.lines = AllLinesView(desk, LINES.id)
        views = (self.kernel_page, self.process_log, self.event_log, *self.outputs.values(), self.results,
                 self.gpu_page, self.ranges, self.graphs, self.lines)  # fmt: skip
        self.views: dict[str, PaneView] = {view.name: view for view in views}

    @property
    def shown(self) -> PaneView:
        """The current page."""
        return self.views[self.current]

    def tabs(self, process: ProcessView | None) -> Sequence[Tab]:
        """The pages that there are: those of ranges, of graphs and of lines only where the target has any."""
        trace = process.trace if process else None
        has = {LINES.id: self.lines.has_lines}
        if trace is not None:
            has |= {RANGES.id: len(trace.ranges) > 0, GRAPHS.id: len(trace.graphs) > 0}
        return (*TABS, *(tab for tab in (RANGES, GRAPHS, LINES) if has.get(tab.id) or tab.id == self.current))

    def take(self, snapshot: Snapshot, process: ProcessView | None, gpus: GpuView) -> None:
        """Show a snapshot, and let the current page read what is new."""
        self.event_log.open(process.event_log if process else None, "no event.log yet")
        for name, path in (("stdout", snapshot.stdout), ("stderr", snapshot.stderr)):
            self.outputs[name].open(path, f"nothing on {name}")
        self.lines.look_for_lines(process)
        page = self.shown
        if isinstance(page, LogView):
            page.look()
        elif isinstance(page, ResultsView):
            page.look(process, running=snapshot.running)
        elif isinstance(page, GrowingView):
            page.look(process)
        elif isinstance(page, GpuPage):
            devices = process.devices if process else ()
            page.show_gpus(gpus, devices, running=snapshot.running, simulated=snapshot.simulated)

    def show_kernel(self, kernel: KernelSnapshot | None) -> None:
        """Show the selected kernel on the pages about one kernel."""
        self.kernel_page.show_kernel(kernel)
        if kernel is not None and not kernel.read:
            self.process_log.open(None, READING_TEXT)
        elif kernel is None or kernel.folder is None:
            why = "no kernel is selected" if kernel is None else "this kernel never reached the probe engine"
            self.process_log.open(None, why)
        else:
            self.process_log.open(kernel.folder / "process.log", "no process.log yet")
