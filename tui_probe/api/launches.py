"""Launches of a kernel, one by one or as one NumPy array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np

from tui_probe.api.tables import TableSequence
from tui_probe.draw import units
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tui_probe.trace.launch_shape import Dim3
    from tui_probe.trace.launches import Launch as LoggedLaunch
    from tui_probe.trace.model import Kernel as TracedKernel

LAUNCH: Final = np.dtype(
    [
        ("number", "<i8"),
        ("time_ns", "<u8"),
        ("grid", "<u4", (3,)),
        ("block", "<u4", (3,)),
        ("shared", "<u4"),
        ("probed", "?"),
        ("status", "<i8"),
        ("probe_bytes", "<i8"),
    ]
)
"""``to_numpy`` of launches: ``time_ns`` is 0, and the signed fields are -1, where the log does not tell."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel. What the log does not tell is None.

    ``number`` counts the launches of the process from 0; ``time_ns`` is nanoseconds since 1970; ``shared`` is dynamic
    shared memory in bytes per block; ``probe_bytes`` the memory of the maps. A launch that was not ``probed`` ran the
    original, for a ``reason``. ``status`` is what the driver answered to a probed one, 0 for success.
    """

    number: int | None
    kernel: int
    time_ns: int | None
    grid: Dim3
    block: Dim3
    shared: int
    stream: int | None
    probed: bool
    status: int | None
    reason: str | None
    probe_bytes: int | None


def launch_of(logged: LoggedLaunch) -> Launch:
    """A launch without what only the trace reader needs."""
    return Launch(**{name: getattr(logged, name) for name in Launch.__slots__})


class Launches(Sequence[Launch], TableSequence):
    """The launches of one kernel that have lines of their own in the log, in its order; others are only counted.

    They are made when they are asked for.
    """

    def __init__(self, kernel: TracedKernel) -> None:
        self._table = kernel.trace.launches
        self._rows = kernel.rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> Launch: ...
    @overload
    def __getitem__(self, place: slice) -> list[Launch]: ...
    def __getitem__(self, place: int | slice) -> Launch | list[Launch]:
        if isinstance(place, slice):
            return [launch_of(self._table[row]) for row in self._rows[place]]
        return launch_of(self._table[self._rows[place]])

    def to_numpy(self) -> NDArray[Any]:
        """All of them: shape (launches,), dtype ``LAUNCH``."""
        rows = np.array(self._rows, dtype=np.int64)
        launches = np.zeros(len(rows), LAUNCH)
        shapes = self._table.column("shape")[rows]
        launches["grid"], launches["block"], launches["shared"] = shapes[:, :3], shapes[:, 3:6], shapes[:, 6]
        launches["time_ns"] = self._table.column("time")[rows]
        for name in ("number", "probed", "status", "probe_bytes"):
            launches[name] = self._table.column(name)[rows]
        return launches

    def _columns(self) -> Sequence[Column[Any]]:
        return _COLUMNS

    def _shown_rows(self) -> Iterator[Launch]:
        return iter(self)


def _outcome(launch: Launch) -> str:
    return "probed" if launch.probed else f"original: {launch.reason or 'no reason in the log'}"


_COLUMNS: Final[tuple[Column[Launch], ...]] = (
    Column("number", None, "launch", lambda r: NOT_MEASURED if r.number is None else str(r.number)),
    Column("grid", None, "grid", lambda r: units.extent(r.grid)),
    Column("block", None, "block", lambda r: units.extent(r.block)),
    Column("shared", None, "shared", lambda r: units.size(r.shared)),
    Column("probe_bytes", None, "probe mem", lambda r: units.size(r.probe_bytes)),
    Column("outcome", None, "outcome", _outcome, right=False, narrow=20),
)
