"""What became of a kernel with one probe of a run that had several."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tui_probe.reasons import Reason
    from tui_probe.trace.event_types import FunctionFigures
Status = Literal["pending", "probed", "skipped", "failed", "excluded"]
"""``pending``: being prepared, or the log ends before its fate is known."""


@dataclass(slots=True)
class Probing:
    """One probe in one kernel. ``function`` is what the driver says of the probed function."""

    probe: str
    status: Status = "pending"
    reason: Reason | None = None
    function: FunctionFigures | None = None
    result_rows: array[int] = field(default_factory=lambda: array("I"), repr=False)
