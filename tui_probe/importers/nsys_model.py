"""What Nsight Systems recorded: kernels, copies and NVTX ranges. Times are in ns from the start of the capture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Kernels:
    """Kernels in the order of start, as columns (i8) of one entry per kernel; -1 is not known.

    ``name`` and ``mangled`` are positions in ``names``. ``thread`` is nsys' id of the host thread whose call, from
    ``launch_start`` to ``launch_end``, launched the kernel. ``shape`` is (kernels, 6): grid x y z, block x y z.
    """

    names: Sequence[str]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    device: NDArray[np.int64]
    stream: NDArray[np.int64]
    process: NDArray[np.int64]
    name: NDArray[np.int64]
    mangled: NDArray[np.int64]
    shape: NDArray[np.int64]
    registers: NDArray[np.int64]
    shared: NDArray[np.int64]
    thread: NDArray[np.int64]
    launch_start: NDArray[np.int64]
    launch_end: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.start)

    @property
    def duration(self) -> NDArray[np.int64]:
        return self.end - self.start

    @property
    def blocks(self) -> NDArray[np.int64]:
        """Blocks of each grid."""
        return np.asarray(self.shape[:, :3].prod(axis=1))


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies and fills of memory on the GPU, in the order of start."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    device: NDArray[np.int64]
    stream: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class HostRanges:
    """NVTX ranges as the host pushed and popped them, by thread and start, the outer of two that start together first.

    ``name`` is a position in ``names``.
    """

    names: Sequence[str]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    thread: NDArray[np.int64]
    name: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True)
class ProjectedRange:
    """A range on one stream: from the start of its first kernel to the end of its last.

    ``level`` is 0 for the outermost. ``stream`` and ``device`` are None where a file does not say. ``busy`` is the time
    of its kernels in ns, None where they are not known one by one.
    """

    name: str
    device: int | None
    stream: int | None
    start: int
    end: int
    kernels: int
    level: int
    busy: int | None
    host_start: int | None
    host_end: int | None

    @property
    def duration(self) -> int:
        return self.end - self.start


class Device(NamedTuple):
    """A GPU. ``sms`` is None where it is not told."""

    number: int
    name: str
    sms: int | None


@dataclass(frozen=True, slots=True)
class KernelSum:
    """All launches of one kernel, where a file gives no single ones. Times in ns."""

    name: str
    launches: int
    total: int
    median: int | None
    least: int | None
    most: int | None


@dataclass(frozen=True, slots=True)
class NsysReport:
    """One export, or several CSV files of one. Of ``ranges`` and ``projected`` one is there, as the files have it."""

    files: tuple[str, ...]
    kernels: Kernels
    copies: Copies
    ranges: HostRanges | None = None
    projected: Sequence[ProjectedRange] = ()
    devices: Mapping[int, Device] = field(default_factory=dict)
    sums: Sequence[KernelSum] = ()
    notes: tuple[str, ...] = ()


def no_kernels() -> Kernels:
    none = np.empty(0, dtype=np.int64)
    shape = np.empty((0, 6), dtype=np.int64)
    return Kernels((), none, none, none, none, none, none, none, shape, none, none, none, none, none)


def no_copies() -> Copies:
    none = np.empty(0, dtype=np.int64)
    return Copies(none, none, none, none)
