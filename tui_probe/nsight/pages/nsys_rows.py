"""Kernels of an imported timeline as rows of a page, made on demand, many at a time.

Values of many kernels or gaps come as lists: those of single rows take several times as long.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import numpy as np

from tui_probe.nsight.analysis.stream_times import GAP_CAUSES
from tui_probe.nsight.importers.nsys_model import UNKNOWN, system_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.csv_table import Batch
    from tui_probe.draw.table import Column
    from tui_probe.nsight.analysis.stream_times import Gaps
    from tui_probe.nsight.importers.nsys_model import Column as NumberColumn
    from tui_probe.nsight.importers.nsys_model import Kernels, NsysReport, SharedRows, Stream
    from tui_probe.nsight.pages.nsys_profile import NsysSources
    from tui_probe.trace.model import Kernel

Row = TypeVar("Row")
_BATCH_ROWS: Final = 4096
"""Rows that are made at a time: numbers of a list are far quicker to ask for than those of an array."""


def known_numbers(column: NDArray[Any]) -> list[int | None]:
    """The numbers of a column; None for those that are not known."""
    numbers: list[int | None] = column.tolist()
    return [None if number == UNKNOWN else number for number in numbers] if UNKNOWN in numbers else numbers


def known_number(number: int) -> int | None:
    return None if number == UNKNOWN else number


class StreamValues:
    """Values of rows by their streams."""

    def __init__(self, streams: Sequence[Stream], queues: NDArray[Any]) -> None:
        self._streams, self._queues = streams, queues.tolist()

    def values_of(self, value: Callable[[Stream], Any]) -> list[Any]:
        values = [*map(value, self._streams)]
        return [values[queue] for queue in self._queues]

    def devices(self) -> list[Any]:
        return self.values_of(lambda stream: stream.device)

    def numbers(self) -> list[Any]:
        return self.values_of(lambda stream: known_number(stream.number))

    def processes(self) -> list[Any]:
        return self.values_of(lambda stream: system_id(stream.process))

    def contexts(self) -> list[Any]:
        return self.values_of(lambda stream: known_number(stream.context))


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
        self.stream_values = StreamValues(self.kernels.streams, self.kernels.queue[positions])

    @cached_property
    def rows(self) -> list[Any]:
        return self._make()

    def numbers(self, name: str) -> list[int | None]:
        """A column of integers."""
        return known_numbers(getattr(self.kernels, name)[self.positions])

    def start_times(self) -> list[int]:
        starts: list[int] = self.kernels.start[self.positions].tolist()
        return starts

    def durations(self) -> list[int]:
        durations: list[int] = (self.kernels.end[self.positions] - self.kernels.start[self.positions]).tolist()
        return durations

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
        first_positions = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
        shapes = {key: _shape(tuple(rows[position].tolist())) for key, position in first_positions.items()}
        return [shapes[key] for key in keys]

    def grids(self) -> list[Any]:
        return [shape[0] for shape in self._shapes]

    def thread_blocks(self) -> list[Any]:
        return [shape[1] for shape in self._shapes]

    def blocks(self) -> list[int | None]:
        return [shape[2] for shape in self._shapes]

    def have_few_blocks(self) -> list[bool | None]:
        """Return whether there are fewer blocks than SMs; None if either is not known."""
        devices = self.report.devices
        sms = self.stream_values.values_of(
            lambda stream: None if stream.device not in devices else devices[stream.device].sms
        )
        pairs = zip(self.blocks(), sms, strict=True)
        return [None if blocks is None or sm_count is None else blocks < sm_count for blocks, sm_count in pairs]

    def trace_labels(self) -> list[str | None]:
        return [row.trace_label for row in self.rows] if self._traces else [None] * len(self.positions)


def _shape(sides: tuple[int, ...]) -> tuple[Any, Any, int | None]:
    grid, block = (None if UNKNOWN in part else part for part in (sides[:3], sides[3:]))
    return grid, block, None if grid is None else grid[0] * grid[1] * grid[2]


class GapBatch:
    """Some gaps; ``make`` makes the rows of them."""

    def __init__(self, kernels: Kernels, gaps: Gaps, make: Callable[[], list[Any]]) -> None:
        self.kernels, self.gaps, self._make = kernels, gaps, make
        self.stream_values = StreamValues(kernels.streams, gaps.queue)

    @cached_property
    def rows(self) -> list[Any]:
        return self._make()

    def numbers(self, name: str) -> list[int]:
        numbers: list[int] = getattr(self.gaps, name).tolist()
        return numbers

    def launch_delays(self) -> list[int | None]:
        """Return the time from the beginning of each gap to the launch of the next kernel."""
        gaps = self.gaps
        delays = (gaps.launch_start - gaps.start).tolist()
        launch_starts = gaps.launch_start.tolist()
        return [None if call == UNKNOWN else time for call, time in zip(launch_starts, delays, strict=True)]

    def causes(self) -> list[str | None]:
        return [GAP_CAUSES[code] for code in self.gaps.cause.tolist()]

    def names(self, side: str) -> list[str]:
        names = self.kernels.names
        return [names[code] for code in self.kernels.name[getattr(self.gaps, side)].tolist()]


KERNEL_VALUES: Final[Mapping[str, Callable[[KernelBatch], Sequence[Any]]]] = {
    "number": lambda batch: batch.positions.tolist(),
    "start_ns": lambda batch: batch.start_times(),
    "duration_ns": lambda batch: batch.durations(),
    "device": lambda batch: batch.stream_values.devices(),
    "stream": lambda batch: batch.stream_values.numbers(),
    "grid": lambda batch: batch.grids(),
    "block": lambda batch: batch.thread_blocks(),
    "blocks": lambda batch: batch.blocks(),
    "few_blocks": lambda batch: batch.have_few_blocks(),
    "registers": lambda batch: batch.numbers("registers"),
    "shared_bytes": lambda batch: batch.numbers("shared"),
    "range": lambda batch: batch.ranges(),
    "kernel": lambda batch: batch.names(),
    "probed": lambda batch: batch.trace_labels(),
    "process": lambda batch: batch.stream_values.processes(),
    "context": lambda batch: batch.stream_values.contexts(),
    "graph": lambda batch: batch.numbers("graph"),
}
GAP_VALUES: Final[Mapping[str, Callable[[GapBatch], Sequence[Any]]]] = {
    "start_ns": lambda batch: batch.numbers("start"),
    "length_ns": lambda batch: batch.numbers("length"),
    "device": lambda batch: batch.stream_values.devices(),
    "stream": lambda batch: batch.stream_values.numbers(),
    "launched_late_ns": lambda batch: batch.launch_delays(),
    "why": lambda batch: batch.causes(),
    "after_kernel": lambda batch: batch.numbers("previous_kernel"),
    "after_name": lambda batch: batch.names("previous_kernel"),
    "before_kernel": lambda batch: batch.numbers("next_kernel"),
    "before_name": lambda batch: batch.names("next_kernel"),
    "process": lambda batch: batch.stream_values.processes(),
    "context": lambda batch: batch.stream_values.contexts(),
}


def in_batches(
    columns: Iterable[Column[Row]], values: Mapping[str, Callable[[Any], Sequence[Any]]]
) -> list[Column[Row]]:
    """The columns with their values of a batch, by key."""
    return [replace(column, batch=values.get(column.key)) for column in columns]


@dataclass(frozen=True, slots=True)
class NsysKernelRow:
    """One kernel, or one execution of a whole graph; ``number`` is its position in the order of start.

    ``shape`` has the sides of grid and block, six numbers. -1 is unknown.
    """

    sources: NsysSources
    number: int
    start: int
    duration: int
    stream_place: Stream
    name: str
    mangled: str
    shape: Sequence[int]
    registers_used: int
    shared_bytes: int
    graph: int

    @property
    def device(self) -> int:
        return self.stream_place.device

    @property
    def stream(self) -> int | None:
        return known_number(self.stream_place.number)

    @property
    def process(self) -> int | None:
        return system_id(self.stream_place.process)

    @property
    def context(self) -> int | None:
        return known_number(self.stream_place.context)

    @property
    def registers(self) -> int | None:
        return known_number(self.registers_used)

    @property
    def shared_size(self) -> int | None:
        return known_number(self.shared_bytes)

    @property
    def grid(self) -> tuple[int, ...] | None:
        return None if UNKNOWN in self.shape[:3] else tuple(self.shape[:3])

    @property
    def block(self) -> tuple[int, ...] | None:
        return None if UNKNOWN in self.shape[3:] else tuple(self.shape[3:])

    @property
    def blocks(self) -> int | None:
        grid = self.grid
        return None if grid is None else grid[0] * grid[1] * grid[2]

    @property
    def has_few_blocks(self) -> bool | None:
        """True if there are fewer blocks than SMs; None if either is not known."""
        device = self.sources.report.devices.get(self.device)
        sms = None if device is None else device.sms
        return None if sms is None or self.blocks is None else self.blocks < sms

    @property
    def range(self) -> str | None:
        return self.sources.range_name(self.number)

    @property
    def traced_kernel(self) -> Kernel | None:
        """Kernel of a trace with the same name; None if there is none."""
        return self.sources.traced_kernel(self.name, self.mangled)

    @property
    def trace_label(self) -> str | None:
        """Trace, number and status of the same kernel in the traces."""
        kernel = self.traced_kernel
        return None if kernel is None else f"{kernel.trace.directory.name} #{kernel.index} {kernel.status}"


class RowsOnDemand(Generic[Row]):
    """Sequence of ``count`` rows. ``make`` makes those from one position to another, ``batch`` their batch."""

    def __init__(self, count: int, make: Callable[[int, int], list[Row]], batch: Callable[[int, int], Batch]) -> None:
        self._count, self._make, self._batch = count, make, batch
        self._last_part: tuple[int | None, list[Row]] = None, []
        """The part that was made last, None before, and its rows."""

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Row:
        part, offset = divmod(range(self._count)[index], _BATCH_ROWS)
        return self._rows(part)[offset]

    def __iter__(self) -> Iterator[Row]:
        for part in range(-(-self._count // _BATCH_ROWS)):
            yield from self._rows(part)

    def batches(self) -> Iterator[Batch]:
        for begin in range(0, self._count, _BATCH_ROWS):
            yield self._batch(begin, min(begin + _BATCH_ROWS, self._count))

    def _rows(self, part: int) -> list[Row]:
        number, rows = self._last_part
        if number != part:
            rows = self._make(part * _BATCH_ROWS, min(self._count, (part + 1) * _BATCH_ROWS))
            self._last_part = part, rows
        return rows


def kernel_rows(sources: NsysSources, positions: NDArray[np.int64]) -> RowsOnDemand[NsysKernelRow]:
    """Return the rows of the kernels at some positions."""

    def batch(begin: int, end: int) -> KernelBatch:
        batch_positions = positions[begin:end]
        return KernelBatch(
            sources.report,
            batch_positions,
            lambda: sources.innermost,
            lambda: _make_rows(sources, batch_positions),
            traces=bool(sources.traces),
        )

    return RowsOnDemand(len(positions), lambda begin, end: _make_rows(sources, positions[begin:end]), batch)


def _make_rows(sources: NsysSources, positions: NDArray[np.int64]) -> list[NsysKernelRow]:
    """Make the rows of the kernels at some positions."""
    kernels = sources.report.kernels
    names, streams = kernels.names, kernels.streams
    columns: tuple[NumberColumn | SharedRows, ...] = (
        kernels.start, kernels.end, kernels.queue, kernels.name, kernels.mangled, kernels.shape,
        kernels.registers, kernels.shared, kernels.graph,
    )  # fmt: skip
    return [
        NsysKernelRow(
            sources, number, start, end - start, streams[queue], names[name],
            "" if mangled == UNKNOWN else names[mangled], shape, registers, shared, graph,
        )
        for number, start, end, queue, name, mangled, shape, registers, shared, graph in zip(
            positions.tolist(), *(column[positions].tolist() for column in columns), strict=True
        )
    ]  # fmt: skip


def count_few_blocks(sources: NsysSources, positions: NDArray[np.int64]) -> int:
    """Count the kernels with fewer blocks than their GPU has SMs."""
    kernels = sources.report.kernels
    sms = np.array([_sm_count(sources, stream) for stream in kernels.streams], dtype=np.int64)
    grids = kernels.shape[positions][:, :3].astype(np.int64)
    has_few_blocks = (
        (grids > 0).all(axis=1) & (grids.prod(axis=1) < sms[kernels.queue[positions]]) if len(grids) else grids[:, 0]
    )
    return int(has_few_blocks.sum())


def _sm_count(sources: NsysSources, stream: Stream) -> int:
    device = sources.report.devices.get(stream.device)
    return 0 if device is None or device.sms is None else device.sms
