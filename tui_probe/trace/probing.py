"""What became of a kernel with one probe of a run that had several."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tui_probe.reasons import Reason
    from tui_probe.trace.kernel_events import FunctionFigures
    from tui_probe.trace.long_column import LongColumn

Status = Literal["pending", "probed", "skipped", "failed", "excluded"]
"""``pending``: being prepared, or the log ends before its fate is known."""


@dataclass(slots=True)
class Probing:
    """One probe in one kernel. ``function`` is what the driver says of the probed function.

    Where several probes are sized (``run --memusage``) ``probe_bytes`` are those of the launch whose records take most,
    ``largest`` is its row, and ``device_bytes`` the most that any takes on the device.
    """

    probe: str
    result_rows: LongColumn = field(repr=False)
    status: Status = "pending"
    reason: Reason | None = None
    function: FunctionFigures | None = None
    probe_bytes: int | None = None
    device_bytes: int | None = None
    largest: int | None = None

    def larger(self, row: int, size: int, device: int) -> None:
        """A launch was sized; one with more memory stands for those before."""
        if self.largest is None or size > (self.probe_bytes or 0):
            self.largest, self.probe_bytes = row, size
        self.device_bytes = max(self.device_bytes or 0, device)
