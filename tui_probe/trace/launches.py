"""Launches and results of a trace as columns: about eighty bytes per launch.

The newest rows are in memory, older ones in a file: memory does not grow with the number of launches. ``column`` hands
out NumPy copies, so that a reader is not disturbed while the log is followed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Self, overload

import numpy as np

from tui_probe.reasons import Reason
from tui_probe.trace.locate import path_in_trace
from tui_probe.trace.long_column import LongColumn, Spill

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.trace.launch_shape import Dim3, Shape

UNKNOWN: Final = -1
"""Value of the columns ``number``, ``status`` and ``result`` that is not in the log."""
CAPTURED: Final = "capturing"
"""The code of the reason of launches that were captured into a graph: they did not run."""
NO_STREAM: Final = 0xFFFFFFFFFFFFFFFF
_MAX_REASONS: Final = 4096
BLOCK: Final = 1 << 12
"""Rows that go to the file together."""
_NO_REASON: Final = (None, None)
_RESULT_NAME = re.compile(r"(0|[1-9]\d{0,11})\.(\d{6})\.bin")


class _Columns:
    """Arrays of the same length, to be cut together."""

    def part(self, choice: slice | NDArray[Any]) -> Self:
        """The rows of a slice, of a mask, or of an array of row numbers, in its order."""
        return type(self)(*(getattr(self, field.name)[choice] for field in fields(self)))  # type: ignore[arg-type]

    def followed_by(self, following: Self) -> Self:
        """Return these rows, then those of ``following``."""
        pairs = ((getattr(self, field.name), getattr(following, field.name)) for field in fields(self))  # type: ignore[arg-type]
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
    """GPU times of sampled launches, with the columns of :class:`tui_probe.trace.gpu_time.TimeSamples`."""

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
    """Number of the launch."""

    def __len__(self) -> int:
        return len(self.line)


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch. ``time_ns`` is ns since 1970; ``shared`` dynamic bytes per block; ``result`` a row of the results.

    Of a launch with several probes at the same time that is the result of the first; ``LaunchTable.results`` has all.
    """

    row: int
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
    reason_code: str | None
    probe_bytes: int | None
    result: int | None


class LaunchTable(Sequence[Launch]):
    """All launches of a process, in the order of the log."""

    def __init__(self, spill: Spill | None = None, block: int = BLOCK) -> None:
        spill = spill or Spill()
        self._kernel = LongColumn("i", spill, block)
        self._number = LongColumn("q", spill, block)
        self._time = LongColumn("Q", spill, block)
        self._shape = LongColumn("I", spill, 7 * block)
        self._stream = LongColumn("Q", spill, block)
        self._probed = LongColumn("b", spill, block)
        self._status = LongColumn("q", spill, block)
        self._reason = LongColumn("i", spill, block)
        self._probe_bytes = LongColumn("q", spill, block)
        self._result = LongColumn("i", spill, block)
        self._more_results: dict[int, list[int]] = {}
        self._reasons: dict[Reason, int] = {}
        self._capture_reasons: list[int] = []
        """The numbers of the reasons of captured launches."""
        self._shift = 0

    def __len__(self) -> int:
        return len(self._kernel)

    def add(
        self,
        kernel: int,
        shape: Shape,
        *,
        number: int | None = None,
        time_ns: int | None = None,
        stream: int | None = None,
        probed: bool = True,
        reason: Reason | None = None,
    ) -> int:
        """Append a launch and return its row."""
        self._kernel.append(kernel)
        self._number.append(UNKNOWN if number is None else number)
        self._time.append(time_ns or 0)
        self._shape.extend(shape)
        self._stream.append(_stream_code(stream))
        self._probed.append(probed)
        self._status.append(UNKNOWN)
        self._reason.append(self.reason_number(reason))
        self._probe_bytes.append(UNKNOWN)
        self._result.append(UNKNOWN)
        return len(self._kernel) - 1

    def extend(self, launches: LaunchColumns) -> int:
        """Append many launches and return the row of the first."""
        first_row = len(self)
        for column, values in (
            (self._kernel, launches.kernel),
            (self._number, launches.number),
            (self._time, launches.time),
            (self._shape, launches.shape),
            (self._stream, launches.stream),
            (self._probed, launches.probed),
            (self._status, launches.status),
            (self._reason, launches.reason),
            (self._probe_bytes, launches.probe_bytes),
            (self._result, np.full(len(launches), UNKNOWN)),
        ):
            column.extend(values)
        return first_row

    def set_probe_bytes(self, row: int, size: int) -> None:
        self._probe_bytes[row] = max(self._probe_bytes[row], size)

    def set_status(self, row: int, status: int) -> None:
        self._status[row] = status

    def set_results(self, rows: NDArray[np.int64], first_result: int) -> None:
        """Note that results ``first_result`` and on are of the launches in these rows; a row of -1 is none."""
        has_launch = rows >= 0
        self._result.set_many(rows[has_launch], (np.arange(len(rows)) + first_result)[has_launch])

    def set_result(self, row: int, result: int) -> bool:
        """Note a result of a launch. Return whether it has another one, of another probe that it had immediately."""
        if is_first := self._result[row] == UNKNOWN:
            self._result[row] = result
        else:
            self._more_results.setdefault(row, []).append(result)
        return not is_first

    def results(self, row: int) -> tuple[int, ...]:
        """Return the results of a launch: one of each probe that it had immediately."""
        first = _none_if_unknown(self._result[row])
        return () if first is None else (first, *self._more_results.get(row, ()))

    def pass_through(self, row: int, reason: Reason | None) -> None:
        """Note that a probed launch failed, and that the original was launched in its place."""
        self._probed[row] = False
        self._reason[row] = self.reason_number(reason)

    def kernel_of(self, row: int) -> int:
        return self._kernel[row]

    def has_succeeded(self, row: int) -> bool:
        """True if it was probed, and the driver reported success."""
        return self._probed[row] == 1 and self._status[row] == 0

    def was_refused(self, row: int) -> bool:
        """True if the driver refused it as the program asked for it, without a probe."""
        return self._probed[row] == 0 and self._status[row] > 0

    def has_failed(self, row: int) -> bool:
        return self._probed[row] == 1 and self._status[row] > 0

    def rows_of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of launches that the process counts with these numbers (i8), -1 for those not in the log."""
        if not len(numbers) or not len(self):
            return np.full(len(numbers), UNKNOWN)
        rows = np.clip(numbers - self._shift, 0, len(self) - 1)
        first_row = int(rows.min())
        is_match = self._number.part(first_row, int(rows.max()) + 1)[rows - first_row] == numbers
        for i in np.flatnonzero(~is_match).tolist():
            row = self.row_of(int(numbers[i]))
            rows[i] = UNKNOWN if row is None else row
        return rows

    def row_of(self, number: int) -> int | None:
        """The row of the launch that the process counts as ``number``."""
        guess = number - self._shift
        if 0 <= guess < len(self._number) and self._number[guess] == number:
            return guess
        row = self._number.last_of(number)
        if row is not None:
            self._shift = number - row
        return row

    @overload
    def __getitem__(self, row: int) -> Launch: ...
    @overload
    def __getitem__(self, row: slice) -> list[Launch]: ...
    def __getitem__(self, row: int | slice) -> Launch | list[Launch]:
        """The launch in a row, or a list of launches for a slice."""
        if isinstance(row, slice):
            return [self[i] for i in range(*row.indices(len(self)))]
        row = range(len(self))[row]
        x, y, z, bx, by, bz, shared = self._shape[7 * row : 7 * row + 7]
        stream, reason = self._stream[row], self._reason[row]
        text, code = self.reasons[reason] if reason >= 0 else _NO_REASON
        return Launch(
            row=row,
            number=_none_if_unknown(self._number[row]),
            kernel=self._kernel[row],
            time_ns=self._time[row] or None,
            grid=(x, y, z),
            block=(bx, by, bz),
            shared=shared,
            stream=None if stream == NO_STREAM else stream,
            probed=bool(self._probed[row]),
            status=_none_if_unknown(self._status[row]),
            reason=text,
            reason_code=code,
            probe_bytes=_none_if_unknown(self._probe_bytes[row]),
            result=_none_if_unknown(self._result[row]),
        )

    def __iter__(self) -> Iterator[Launch]:
        return (self[row] for row in range(len(self)))

    @property
    def reasons(self) -> list[Reason]:
        return list(self._reasons)

    def column(self, name: str, first_row: int = 0) -> NDArray[Any]:
        """A copy of one column from row ``first_row`` on.

        ``kernel`` i4, ``number`` i8, ``time`` u8 (ns since 1970, 0 unknown), ``shape`` u4 of shape (launches, 7),
        ``stream`` u8, ``probed`` i1, ``status`` i8, ``reason`` i4, ``probe_bytes`` i8, ``result`` i4; -1 is unknown.
        """
        values: LongColumn = getattr(self, f"_{name}")
        copy = values.part(7 * first_row if name == "shape" else first_row)
        return copy.reshape(-1, 7) if name == "shape" else copy

    def captured_mask(self, first_row: int = 0) -> NDArray[np.bool_]:
        """Return, for the rows from ``first_row`` on, which launches were captured into a graph, and so did not run."""
        return np.isin(self._reason.part(first_row), self._capture_reasons)

    def is_captured(self, row: int) -> bool:
        return self._reason[row] in self._capture_reasons

    def reason_number(self, reason: Reason | None) -> int:
        """The number of a reason in the column; it is ``reasons[number]``."""
        if reason is None:
            return UNKNOWN
        if reason not in self._reasons and len(self._reasons) >= _MAX_REASONS:
            reason = Reason("other", None)
        number = self._reasons.setdefault(reason, len(self._reasons))
        if reason.code == CAPTURED and number not in self._capture_reasons:
            self._capture_reasons.append(number)
        return number


def _stream_code(stream: int | None) -> int:
    return NO_STREAM if stream is None else stream


def _none_if_unknown(value: int) -> int | None:
    return None if value == UNKNOWN else value


class ResultTable:
    """The result files that the log names: 24 bytes each, since a name is a time in microseconds."""

    def __init__(self, root: Path, spill: Spill | None = None, block: int = BLOCK) -> None:
        spill = spill or Spill()
        self._root = root
        self._launch = LongColumn("i", spill, block)
        self._micros = LongColumn("q", spill, block)
        self._size = LongColumn("q", spill, block)
        self._probe = LongColumn("i", spill, block)
        self._names: dict[int, str] = {}
        self._probes: list[str] = []

    def __len__(self) -> int:
        return len(self._micros)

    def add(self, name: str, size: int, launch: int | None) -> int:
        """Append the file of this name in the folder ``result`` and return its row."""
        match = _RESULT_NAME.fullmatch(name)
        if match is None:
            self._names[len(self)] = name
        self._launch.append(UNKNOWN if launch is None else launch)
        self._micros.append(int(match[1] + match[2]) if match else UNKNOWN)
        self._size.append(size)
        self._probe.append(UNKNOWN)
        return len(self._micros) - 1

    def extend(self, results: ResultColumns, launches: NDArray[np.int64]) -> int:
        """Append many files, of the launches in these rows (-1 for none); the row of the first."""
        first_row = len(self)
        self._launch.extend(launches)
        self._micros.extend(results.micros)
        self._size.extend(results.size)
        self._probe.extend(np.full(len(results), UNKNOWN))
        return first_row

    def name(self, row: int) -> str:
        micros = self._micros[row]
        return self._names[row] if micros == UNKNOWN else f"{micros // 1_000_000}.{micros % 1_000_000:06d}.bin"

    def path(self, row: int) -> Path | None:
        """The file, or None where the log names something that is not in the trace."""
        return path_in_trace(self._root, "result", self.name(row))

    def launch(self, row: int) -> int | None:
        return _none_if_unknown(self._launch[row])

    def probe(self, row: int) -> str | None:
        """The probe that made it, of several in the run; None where there was one only."""
        number = self._probe[row]
        return None if number == UNKNOWN else self._probes[number]

    def set_probe(self, row: int, probe: str) -> None:
        if probe not in self._probes:
            self._probes.append(sys.intern(probe))
        self._probe[row] = self._probes.index(probe)

    def set_launch(self, row: int, launch: int) -> None:
        self._launch[row] = launch

    def size(self, row: int) -> int:
        return self._size[row]
