"""Kernels of an imported profile as rows of a table, made when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np

from tui_probe.nsight.importers.nsys_model import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.nsight.importers.nsys_model import Stream
    from tui_probe.nsight.pages.nsys_sources import NsysSources
    from tui_probe.trace.model import Kernel

Row = TypeVar("Row")
_AT_ONCE: Final = 4096
"""Rows that are made at a time: numbers of a list are far quicker to ask for than those of an array."""


@dataclass(frozen=True, slots=True)
class NsysKernelRow:
    """One kernel, or one execution of a whole graph; ``number`` is its place in the order of start.

    ``shape`` has grid and block, six sides. -1 is not known.
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
        return _known(self.at.number)

    @property
    def process(self) -> int | None:
        return _known(self.at.process)

    @property
    def context(self) -> int | None:
        return _known(self.at.context)

    @property
    def registers(self) -> int | None:
        return _known(self.registers_used)

    @property
    def shared(self) -> int | None:
        return _known(self.shared_bytes)

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
        """Whether there are fewer blocks than SMs; None if either is not known."""
        device = self.sources.report.devices.get(self.device)
        sms = None if device is None else device.sms
        return None if sms is None or self.blocks is None else self.blocks < sms

    @property
    def range(self) -> str | None:
        return self.sources.range_name(self.number)

    @property
    def traced(self) -> Kernel | None:
        """The same kernel in a trace."""
        return self.sources.traced(self.name, self.mangled)

    @property
    def probed(self) -> str | None:
        """Which kernel of which trace it is, and whether it was probed."""
        kernel = self.traced
        return None if kernel is None else f"{kernel.trace.directory.name} #{kernel.index} {kernel.status}"


class RowsOnDemand(Generic[Row]):
    """``count`` rows, of which ``make`` makes those from one place to another."""

    def __init__(self, count: int, make: Callable[[int, int], list[Row]]) -> None:
        self._count, self._make = count, make
        self._part: tuple[int, list[Row]] = UNKNOWN, []
        """The part that was made last, and its rows."""

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int) -> Row:
        part, offset = divmod(range(self._count)[place], _AT_ONCE)
        return self._rows(part)[offset]

    def __iter__(self) -> Iterator[Row]:
        for part in range(-(-self._count // _AT_ONCE)):
            yield from self._rows(part)

    def _rows(self, part: int) -> list[Row]:
        number, rows = self._part
        if number != part:
            rows = self._make(part * _AT_ONCE, min(self._count, (part + 1) * _AT_ONCE))
            self._part = part, rows
        return rows


def kernel_rows(sources: NsysSources, positions: NDArray[np.int64]) -> RowsOnDemand[NsysKernelRow]:
    """Rows of the kernels at some positions."""
    return RowsOnDemand(len(positions), lambda begin, end: _few_rows(sources, positions[begin:end]))


def _few_rows(sources: NsysSources, positions: NDArray[np.int64]) -> list[NsysKernelRow]:
    """The rows of a few kernels."""
    kernels = sources.report.kernels
    names, streams = kernels.names, kernels.streams
    columns = (kernels.start, kernels.end, kernels.queue, kernels.name, kernels.mangled, kernels.shape,
               kernels.registers, kernels.shared, kernels.graph)  # fmt: skip
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
    """How many of the kernels have fewer blocks than their GPU has SMs."""
    kernels = sources.report.kernels
    sms = np.array([_sms(sources, stream) for stream in kernels.streams], dtype=np.int64)
    grids = kernels.shape[positions, :3].astype(np.int64)
    few = (grids > 0).all(axis=1) & (grids.prod(axis=1) < sms[kernels.queue[positions]]) if len(grids) else grids[:, 0]
    return int(few.sum())


def _sms(sources: NsysSources, stream: Stream) -> int:
    device = sources.report.devices.get(stream.device)
    return 0 if device is None or device.sms is None else device.sms


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value
