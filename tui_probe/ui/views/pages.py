"""Pages whose lines depend on their width."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw.spans import pad, wrap
from tui_probe.pages.kernel_detail import LABEL, detail_lines
from tui_probe.ui.gpu_page import gpu_lines
from tui_probe.ui.nvml import GpuView
from tui_probe.ui.views.text import TextView

if TYPE_CHECKING:
    from tui_probe.draw.spans import Line
    from tui_probe.pages.kernel_row import KernelRow
    from tui_probe.ui.views.view import Desk


READING = "reading the folder of this kernel"


def _found(words: str, cells: int) -> list[Line]:
    """What was found, whole, as the table may have no room for it."""
    role = "warn" if words.startswith("!") else ""
    parts = wrap(words, max(10, cells - LABEL - 3)) if words else []
    return [((" " + pad("" if place else "found", LABEL), "dim"), (part, role)) for place, part in enumerate(parts)]


class KernelPage(TextView):
    """The selected kernel: why it was probed or not, what to do, what was found, what the probe costs it."""

    def __init__(self, desk: Desk, name: str) -> None:
        super().__init__(desk, name, "no kernel is selected")
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
            found = _found(self.kernel.finding, cells)
            self.lines = (
                detail_lines(self.kernel, cells, found=found) if self.kernel.read else [((f" {READING}", "dim"),)]
            )


class GpuPage(TextView):
    """The GPUs now, and their load in the last minutes."""

    def __init__(self, desk: Desk, name: str, *, ascii_only: bool) -> None:
        super().__init__(desk, name)
        self.ascii_only = ascii_only
        self.gpus = GpuView()
        self.simulated = False

    def show_gpus(self, gpus: GpuView, *, simulated: bool) -> None:
        """Show the newest samples."""
        self.gpus, self.simulated = gpus, simulated
        self._make_lines()
        self.changed()

    def resize(self, width: int, height: int) -> None:
        """Draw charts for another width."""
        super().resize(width, height)
        self._make_lines()

    def _make_lines(self) -> None:
        self.lines = gpu_lines(self.gpus, self.width, simulated=self.simulated, ascii_only=self.ascii_only)
