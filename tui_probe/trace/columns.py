"""Launches and results read together, as one array for each of their figures."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class _Columns:
    """Arrays of the same length, to be cut together."""

    def part(self, choice: slice | NDArray[Any]) -> Self:
        """The rows of a slice, of a mask, or of an array of row numbers, in its order."""
        return type(self)(*(getattr(self, each.name)[choice] for each in fields(self)))  # type: ignore[arg-type]

    def followed_by(self, other: Self) -> Self:
        """These rows, then those of ``other``."""
        pairs = ((getattr(self, each.name), getattr(other, each.name)) for each in fields(self))  # type: ignore[arg-type]
        return type(self)(*map(np.concatenate, pairs))


@dataclass(frozen=True, slots=True)
class LaunchColumns(_Columns):
    """Launches that have ended; -1 is not known."""

    line: NDArray[np.int64]
    """The line of the log, counted from the first of those read together."""
    kernel: NDArray[np.uint64]
    number: NDArray[np.uint64]
    time: NDArray[np.uint64]
    """Nanoseconds since 1970."""
    shape: NDArray[np.uint32]
    """Shape (launches, 7): grid x y z, block x y z, dynamic shared memory."""
    stream: NDArray[np.uint64]
    probed: NDArray[np.bool_]
    reason: NDArray[np.int32]
    """Numbers of the launch table."""
    probe_bytes: NDArray[np.int64]
    status: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.line)


@dataclass(frozen=True, slots=True)
class TimeColumns(_Columns):
    """GPU times of sampled launches, with the columns of :class:`tui_probe.trace.time_samples.TimeSamples`."""

    kernel: NDArray[np.uint64]
    launch: NDArray[np.uint64]
    key: NDArray[np.int64]
    probed: NDArray[np.bool_]
    ns: NDArray[np.uint64]
    weight: NDArray[np.uint64]
    host: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.kernel)


@dataclass(frozen=True, slots=True)
class ResultColumns(_Columns):
    """Result files, named after a time."""

    line: NDArray[np.int64]
    micros: NDArray[np.uint64]
    """The name: microseconds since the epoch of the trace."""
    size: NDArray[np.uint64]
    kernel: NDArray[np.uint64]
    number: NDArray[np.uint64]
    """Of the launch."""

    def __len__(self) -> int:
        return len(self.line)
