"""The pages of the live screen: what each shows of a snapshot, and reads of what is new while it is visible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.ui.views.all_lines import AllLinesView
from tui_probe.ui.views.graphs import GraphsView
from tui_probe.ui.views.grown import GrownView
from tui_probe.ui.views.log import LogView
from tui_probe.ui.views.pages import READING, GpuPage, KernelPage
from tui_probe.ui.views.ranges import RangesView
from tui_probe.ui.views.results import ResultsView
from tui_probe.ui.widgets.bars import NUMBERED, Tab

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.pages.findings.found import Found
    from tui_probe.pages.kernel_row import KernelRow
    from tui_probe.ui.feed import ProcessView, Snapshot
    from tui_probe.ui.nvml import GpuView
    from tui_probe.ui.views.view import Desk, View

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


class LivePages:
    """One of them is visible: ``current``."""

    def __init__(self, desk: Desk, found: Callable[[int], Sequence[Found]], *, ascii_only: bool) -> None:
        self.current = TABS[0].id
        self.kernel_page = KernelPage(desk, "kernel", found)
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
        self.views: dict[str, View] = {view.name: view for view in views}

    @property
    def shown(self) -> View:
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
        elif isinstance(page, GrownView):
            page.look(process)
        elif isinstance(page, GpuPage):
            devices = process.devices if process else ()
            page.show_gpus(gpus, devices, running=snapshot.running, simulated=snapshot.simulated)

    def show_kernel(self, kernel: KernelRow | None) -> None:
        """Show the selected kernel on the pages about one kernel."""
        self.kernel_page.show_kernel(kernel)
        if kernel is not None and not kernel.read:
            self.process_log.open(None, READING)
        elif kernel is None or kernel.folder is None:
            why = "no kernel is selected" if kernel is None else "this kernel never reached the probe engine"
            self.process_log.open(None, why)
        else:
            self.process_log.open(kernel.folder / "process.log", "no process.log yet")
