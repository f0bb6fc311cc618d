"""Values of many kernels or gaps of a timeline at the same time, as lists: those of single rows take several times as
long.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.nsight.analysis.stream_times import GAP_CAUSES
from tui_probe.nsight.importers.nsys_model import UNKNOWN, system_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.table import Column, Row
    from tui_probe.nsight.analysis.stream_times import Gaps
    from tui_probe.nsight.importers.nsys_model import Kernels, NsysReport, Stream


def known_list(column: NDArray[Any]) -> list[int | None]:
    """The numbers of a column; None for those that are not known."""
    numbers: list[int | None] = column.tolist()
    return [None if number == UNKNOWN else number for number in numbers] if UNKNOWN in numbers else numbers


def known(number: int) -> int | None:
    return None if number == UNKNOWN else number


class StreamValues:
    """Values of rows by their streams."""

    def __init__(self, streams: Sequence[Stream], queues: NDArray[Any]) -> None:
        self._streams, self._queues = streams, queues.tolist()

    def of(self, value: Callable[[Stream], Any]) -> list[Any]:
        values = [*map(value, self._streams)]
        return [values[queue] for queue in self._queues]

    def devices(self) -> list[Any]:
        return self.of(lambda stream: stream.device)

    def numbers(self) -> list[Any]:
        return self.of(lambda stream: known(stream.number))

    def processes(self) -> list[Any]:
        return self.of(lambda stream: system_id(stream.process))

    def contexts(self) -> list[Any]:
        return self.of(lambda stream: known(stream.context))


class KernelBatch:
    """Kernels at some positions. ``innermost`` gives the range around each kernel of the report, ``make`` the rows;
    without ``traces`` none of them was probed.
    """

    def __init__(
        self,
        report: NsysReport,
        positions: NDArray[np.int64],
        innermost: Callable[[], NDArray[np.int64]],
        make: Callable[[], list[Any]],
        *,
        traces: bool,
    ) -> None:
        self.report, self.positions, self._innermost, self._make = report, positions, innermost, make
        self.kernels, self._traces = report.kernels, traces
        self.at = StreamValues(self.kernels.streams, self.kernels.queue[positions])

    @cached_property
    def rows(self) -> list[Any]:
        return self._make()

    def numbers(self, name: str) -> list[int | None]:
        """A column of integers."""
        return known_list(getattr(self.kernels, name)[self.positions])

    def starts(self) -> list[int]:
        found: list[int] = self.kernels.start[self.positions].tolist()
        return found

    def durations(self) -> list[int]:
        found: list[int] = (self.kernels.end[self.positions] - self.kernels.start[self.positions]).tolist()
        return found

    def names(self) -> list[str]:
        names = self.kernels.names
        return [names[code] for code in self.kernels.name[self.positions].tolist()]

    def ranges(self) -> list[str | None]:
        """The name of the innermost range around each kernel."""
        ranges = self.report.ranges
        if ranges is None or not len(ranges):
            return [None] * len(self.positions)
        rows = self._innermost()[self.positions]
        names = [*(name or None for name in ranges.names), None]
        return [names[code] for code in np.where(rows == UNKNOWN, UNKNOWN, ranges.name[rows]).tolist()]

    @cached_property
    def _shapes(self) -> list[tuple[Any, Any, int | None]]:
        """Grid, block and blocks, made once for each shape."""
        rows = np.ascontiguousarray(self.kernels.shape[self.positions])
        keys = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel().tolist()
        first = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
        made = {key: _shape(tuple(rows[place].tolist())) for key, place in first.items()}
        return [made[key] for key in keys]

    def grids(self) -> list[Any]:
        return [shape[0] for shape in self._shapes]

    def thread_blocks(self) -> list[Any]:
        return [shape[1] for shape in self._shapes]

    def blocks(self) -> list[int | None]:
        return [shape[2] for shape in self._shapes]

    def few_blocks(self) -> list[bool | None]:
        """Return whether there are fewer blocks than SMs; None if either is not known."""
        devices = self.report.devices
        sms = self.at.of(lambda stream: None if stream.device not in devices else devices[stream.device].sms)
        pairs = zip(self.blocks(), sms, strict=True)
        return [None if blocks is None or most is None else blocks < most for blocks, most in pairs]

    def probed(self) -> list[str | None]:
        return [row.probed for row in self.rows] if self._traces else [None] * len(self.positions)


def _shape(sides: tuple[int, ...]) -> tuple[Any, Any, int | None]:
    grid, block = (None if UNKNOWN in part else part for part in (sides[:3], sides[3:]))
    return grid, block, None if grid is None else grid[0] * grid[1] * grid[2]


class GapBatch:
    """Some gaps; ``make`` makes the rows of them."""

    def __init__(self, kernels: Kernels, gaps: Gaps, make: Callable[[], list[Any]]) -> None:
        self.kernels, self.gaps, self._make = kernels, gaps, make
        self.at = StreamValues(kernels.streams, gaps.queue)

    @cached_property
    def rows(self) -> list[Any]:
        return self._make()

    def numbers(self, name: str) -> list[int]:
        found: list[int] = getattr(self.gaps, name).tolist()
        return found

    def late(self) -> list[int | None]:
        """Return the time from the beginning of each gap to the launch of the next kernel."""
        gaps = self.gaps
        late = (gaps.launched - gaps.start).tolist()
        launched = gaps.launched.tolist()
        return [None if call == UNKNOWN else time for call, time in zip(launched, late, strict=True)]

    def causes(self) -> list[str | None]:
        return [GAP_CAUSES[code] for code in self.gaps.why.tolist()]

    def names(self, side: str) -> list[str]:
        names = self.kernels.names
        return [names[code] for code in self.kernels.name[getattr(self.gaps, side)].tolist()]


KERNEL_VALUES: Final[Mapping[str, Callable[[KernelBatch], Sequence[Any]]]] = {
    "number": lambda batch: batch.positions.tolist(),
    "start_ns": lambda batch: batch.starts(),
    "duration_ns": lambda batch: batch.durations(),
    "device": lambda batch: batch.at.devices(),
    "stream": lambda batch: batch.at.numbers(),
    "grid": lambda batch: batch.grids(),
    "block": lambda batch: batch.thread_blocks(),
    "blocks": lambda batch: batch.blocks(),
    "few_blocks": lambda batch: batch.few_blocks(),
    "registers": lambda batch: batch.numbers("registers"),
    "shared_bytes": lambda batch: batch.numbers("shared"),
    "range": lambda batch: batch.ranges(),
    "kernel": lambda batch: batch.names(),
    "probed": lambda batch: batch.probed(),
    "process": lambda batch: batch.at.processes(),
    "context": lambda batch: batch.at.contexts(),
    "graph": lambda batch: batch.numbers("graph"),
}
GAP_VALUES: Final[Mapping[str, Callable[[GapBatch], Sequence[Any]]]] = {
    "start_ns": lambda batch: batch.numbers("start"),
    "length_ns": lambda batch: batch.numbers("length"),
    "device": lambda batch: batch.at.devices(),
    "stream": lambda batch: batch.at.numbers(),
    "launched_late_ns": lambda batch: batch.late(),
    "why": lambda batch: batch.causes(),
    "after_kernel": lambda batch: batch.numbers("before"),
    "after_name": lambda batch: batch.names("before"),
    "before_kernel": lambda batch: batch.numbers("after"),
    "before_name": lambda batch: batch.names("after"),
    "process": lambda batch: batch.at.processes(),
    "context": lambda batch: batch.at.contexts(),
}


def in_batches(
    columns: Iterable[Column[Row]], values: Mapping[str, Callable[[Any], Sequence[Any]]]
) -> list[Column[Row]]:
    """The columns with their values of a batch, by key."""
    return [replace(column, batch=values.get(column.key)) for column in columns]
