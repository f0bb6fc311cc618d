"""Kernels of an imported profile as rows of a table, made when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.importers.nsys_model import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.importers.nsys_model import Stream
    from tui_probe.pages.nsight.nsys_sources import NsysSources
    from tui_probe.trace.model import Kernel

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


class KernelRows:
    """Rows of the kernels at some positions."""

    def __init__(self, sources: NsysSources, positions: NDArray[np.int64]) -> None:
        self._sources, self._positions = sources, positions
        self._made: tuple[int, list[NsysKernelRow]] = UNKNOWN, []

    def __len__(self) -> int:
        return len(self._positions)

    def __getitem__(self, place: int) -> NsysKernelRow:
        part, offset = divmod(range(len(self))[place], _AT_ONCE)
        return self._part(part)[offset]

    def __iter__(self) -> Iterator[NsysKernelRow]:
        for part in range(-(-len(self) // _AT_ONCE)):
            yield from self._part(part)

    def _part(self, part: int) -> list[NsysKernelRow]:
        number, rows = self._made
        if number != part:
            rows = kernel_rows(self._sources, self._positions[part * _AT_ONCE : (part + 1) * _AT_ONCE])
            self._made = part, rows
        return rows


def kernel_rows(sources: NsysSources, positions: NDArray[np.int64]) -> list[NsysKernelRow]:
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
