"""Pages whose lines depend on their width."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.pages.kernel_detail import detail_lines
from tui_probe.ui.gpu_page import device_lines, gpu_lines, not_now
from tui_probe.ui.nvml import GpuView
from tui_probe.ui.views.text import TextView

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.pages.findings.found import Found
    from tui_probe.pages.kernel_row import KernelRow
    from tui_probe.trace.process_events import Device
    from tui_probe.ui.views.view import Desk


READING = "reading the folder of this kernel"


def _found(each: Found, cells: int) -> list[Line]:
    """The findings of a probe; imported with the first of them, since it brings the analyses."""
    from tui_probe.pages.findings.lines import found_lines

    return found_lines(each, cells)


class KernelPage(TextView):
    """The selected kernel: why it was probed or not, what to do, what was found, what the probe costs it."""

    def __init__(self, desk: Desk, name: str, found: Callable[[int], Sequence[Found]]) -> None:
        super().__init__(desk, name, "no kernel is selected")
        self.found = found
        """What each probe found in the kernel of an index, as far as it was read."""
        self.kernel: KernelRow | None = None

    def show_kernel(self, kernel: KernelRow | None) -> None:
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
            found = [line for each in self.found(self.kernel.index) for line in _found(each, cells)]
            self.lines = (
                detail_lines(self.kernel, cells, found=found) if self.kernel.read else [((f" {READING}", "dim"),)]
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
            self.lines += gpu_lines(self.gpus, cells, ascii_only=self.ascii_only) if self.running else not_now(cells)
