"""Kernels of an imported timeline as rows of a page, made on demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np

from tui_probe.nsight.importers.nsys_model import UNKNOWN, system_id
from tui_probe.nsight.pages.row_batches import KernelBatch, known

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.csv_output import Batch
    from tui_probe.nsight.importers.nsys_model import Column, SharedRows, Stream
    from tui_probe.nsight.pages.nsys_profile import NsysSources
    from tui_probe.trace.model import Kernel

Row = TypeVar("Row")
_BATCH_ROWS: Final = 4096
"""Rows that are made at a time: numbers of a list are far quicker to ask for than those of an array."""


@dataclass(frozen=True, slots=True)
class NsysKernelRow:
    """One kernel, or one execution of a whole graph; ``number`` is its position in the order of start.

    ``shape`` has the sides of grid and block, six numbers. -1 is unknown.
    """

    sources: NsysSources
    number: int
    start: int
    duration: int
    at: Stream
    name: str
    mangled: str
    shape: Sequence[int]
    registers_used: int
    shared_bytes: int
    graph: int

    @property
    def device(self) -> int:
        return self.at.device

    @property
    def stream(self) -> int | None:
        return known(self.at.number)

    @property
    def process(self) -> int | None:
        return system_id(self.at.process)

    @property
    def context(self) -> int | None:
        return known(self.at.context)

    @property
    def registers(self) -> int | None:
        return known(self.registers_used)

    @property
    def shared(self) -> int | None:
        return known(self.shared_bytes)

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
    def few_blocks(self) -> bool | None:
        """True if there are fewer blocks than SMs; None if either is not known."""
        device = self.sources.report.devices.get(self.device)
        sms = None if device is None else device.sms
        return None if sms is None or self.blocks is None else self.blocks < sms

    @property
    def range(self) -> str | None:
        return self.sources.range_name(self.number)

    @property
    def traced(self) -> Kernel | None:
        """Kernel of a trace with the same name; None if there is none."""
        return self.sources.traced(self.name, self.mangled)

    @property
    def probed(self) -> str | None:
        """Trace, number and status of the same kernel in the traces."""
        kernel = self.traced
        return None if kernel is None else f"{kernel.trace.directory.name} #{kernel.index} {kernel.status}"


class RowsOnDemand(Generic[Row]):
    """Sequence of ``count`` rows. ``make`` makes those from one position to another, ``batch`` their batch."""

    def __init__(self, count: int, make: Callable[[int, int], list[Row]], batch: Callable[[int, int], Batch]) -> None:
        self._count, self._make, self._batch = count, make, batch
        self._part: tuple[int | None, list[Row]] = None, []
        """The part that was made last, None before, and its rows."""

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int) -> Row:
        part, offset = divmod(range(self._count)[place], _BATCH_ROWS)
        return self._rows(part)[offset]

    def __iter__(self) -> Iterator[Row]:
        for part in range(-(-self._count // _BATCH_ROWS)):
            yield from self._rows(part)

    def batches(self) -> Iterator[Batch]:
        for begin in range(0, self._count, _BATCH_ROWS):
            yield self._batch(begin, min(begin + _BATCH_ROWS, self._count))

    def _rows(self, part: int) -> list[Row]:
        number, rows = self._part
        if number != part:
            rows = self._make(part * _BATCH_ROWS, min(self._count, (part + 1) * _BATCH_ROWS))
            self._part = part, rows
        return rows


def kernel_rows(sources: NsysSources, positions: NDArray[np.int64]) -> RowsOnDemand[NsysKernelRow]:
    """Return the rows of the kernels at some positions."""

    def batch(begin: int, end: int) -> KernelBatch:
        own = positions[begin:end]
        return KernelBatch(
            sources.report,
            own,
            lambda: sources.innermost,
            lambda: _make_rows(sources, own),
            traces=bool(sources.traces),
        )

    return RowsOnDemand(len(positions), lambda begin, end: _make_rows(sources, positions[begin:end]), batch)


def _make_rows(sources: NsysSources, positions: NDArray[np.int64]) -> list[NsysKernelRow]:
    """Make the rows of the kernels at some positions."""
    kernels = sources.report.kernels
    names, streams = kernels.names, kernels.streams
    columns: tuple[Column | SharedRows, ...] = (
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


def few_blocks(sources: NsysSources, positions: NDArray[np.int64]) -> int:
    """Count the kernels with fewer blocks than their GPU has SMs."""
    kernels = sources.report.kernels
    sms = np.array([_sms(sources, stream) for stream in kernels.streams], dtype=np.int64)
    grids = kernels.shape[positions][:, :3].astype(np.int64)
    few = (grids > 0).all(axis=1) & (grids.prod(axis=1) < sms[kernels.queue[positions]]) if len(grids) else grids[:, 0]
    return int(few.sum())


def _sms(sources: NsysSources, stream: Stream) -> int:
    device = sources.report.devices.get(stream.device)
    return 0 if device is None or device.sms is None else device.sms
