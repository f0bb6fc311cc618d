"""Timeline of Nsight Systems as integer columns: kernels, copies, NVTX ranges; times in ns from its start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tui_probe.draw import units

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_MAX_TABLE_SPAN: Final = 1 << 20
"""Numbers that differ by less are looked up in a table, which is quicker than to sort them."""
_MIN_OFFSET_BYTES: Final = 4
"""Bytes of a number in which a difference of this size fits."""
UNKNOWN: Final = -1
Column: TypeAlias = NDArray[Any]
"""Integers, of 32 bits where all of a column fit."""
_THREAD_BITS: Final = 24
"""Bits of a thread's id in nsys' number of it; above them are those of the process's id, as many."""
_ID_MASK: Final = (1 << 24) - 1
_WIDTHS: Final = ((np.int16, (1 << 15) - 1), (np.int32, (1 << 31) - 1), (np.int64, 1 << 63))
"""Types with the number that entries stay below, so that a difference to -1 fits, too."""
_NO_ID_BIT: Final = 1 << 38
"""Marks a process without a system id in the file."""
_FILE_MASK: Final = (_NO_ID_BIT >> _THREAD_BITS) - 1
MAX_TIME_NS: Final = 1 << 62
"""Ns from which on a time is none: 146 years, and half of what a column holds, so that no difference overflows."""
NO_TIME: Final = -MAX_TIME_NS
"""Stands for a time that a row does not have."""


def distinct(column: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The numbers of a column, ascending, and for each entry its position among them."""
    if not len(column):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
    minimum, maximum = int(column.min()), int(column.max())
    if minimum == maximum:
        return np.array([minimum], dtype=np.int64), np.zeros(len(column), dtype=np.int32)
    if maximum - minimum >= _MAX_TABLE_SPAN:
        numbers, positions = np.unique(column, return_inverse=True)
        return numbers.astype(np.int64), positions.reshape(-1).astype(np.int32)
    offsets: NDArray[Any] = (
        column.astype(np.int32) - minimum if column.itemsize < _MIN_OFFSET_BYTES else column - minimum
    )
    occurs = np.zeros(int(offsets.max()) + 1, dtype=np.bool_)
    occurs[offsets] = True
    positions = (np.cumsum(occurs) - 1).astype(np.int32)[offsets]
    return np.flatnonzero(occurs) + minimum, positions


def distinct_rows(columns: Sequence[NDArray[Any]]) -> tuple[list[tuple[int, ...]], NDArray[np.int32]]:
    """Return the distinct rows of several columns, ascending, the first column first, and the position of each row
    among them.
    """
    rows: list[tuple[int, ...]] = [()]
    places = np.zeros(len(columns[0]), dtype=np.int32)
    for column in columns:
        numbers, positions = distinct(column)
        count = max(len(numbers), 1)
        codes, places = distinct(places.astype(np.int64) * count + positions)
        rows = [(*rows[code // count], int(numbers[code % count])) for code in codes.tolist()]
    return rows, places


def ranks(texts: Sequence[str]) -> NDArray[np.int32]:
    """Return the position of each text in alphabetical order."""
    positions = np.empty(len(texts), dtype=np.int32)
    positions[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return positions


class Stream(NamedTuple):
    """A CUDA stream. Its number counts in its context, the context's in its process; -1 is not known."""

    process: int
    """The id that the system gave the process, with the number of the file above it (``process_in_file``)."""
    device: int
    """The number of the GPU, not the one by which the process calls it."""
    context: int
    number: int


@dataclass(frozen=True, slots=True)
class SharedRows:
    """A column with many equal entries: the distinct ``rows``, and for each entry its position among them."""

    rows: Column
    positions: Column

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, indices: Column) -> Column:
        return np.asarray(self.rows[self.positions[indices]])

    def tolist(self) -> list[Any]:
        entries: list[Any] = self.rows[self.positions].tolist()
        return entries


def compact(column: Column) -> Column:
    """Return the integers for reading: in 16 or 32 bits if they fit, without memory if all are equal."""
    if not len(column):
        return column
    minimum, maximum = int(column.min()), int(column.max())
    if minimum == maximum:
        return np.broadcast_to(column[0], len(column))
    return column.astype(next(kind for kind, limit in _WIDTHS if -limit <= minimum and maximum < limit), copy=False)


@dataclass(frozen=True, slots=True)
class Kernels:
    """Kernels in the order of start, as integer columns of one entry per kernel; -1 is not known.

    ``queue`` is a position in ``streams``, ``name`` and ``mangled`` are positions in ``names``. ``thread`` is nsys' id
    of the host thread whose call, from ``launch_start`` to ``launch_end``, launched the kernel. ``shape`` is
    (kernels, 6): grid x y z, block x y z. ``graph`` is -1 for a kernel; other entries are executions of a CUDA graph
    that was recorded as a whole, with the graph's number: the kernels in it are not in the file.
    """

    names: Sequence[str]
    streams: Sequence[Stream]
    start: Column
    end: Column
    queue: Column
    name: Column
    mangled: Column
    shape: Column | SharedRows
    registers: Column | SharedRows
    shared: Column | SharedRows
    graph: Column
    thread: Column
    launch_start: Column
    launch_end: Column

    def __len__(self) -> int:
        return len(self.start)

    @property
    def duration(self) -> NDArray[np.int64]:
        return np.asarray(self.end - self.start)

    @property
    def device(self) -> NDArray[np.int64]:
        return stream_numbers(self.streams, "device")[self.queue]

    @property
    def stream(self) -> NDArray[np.int64]:
        return stream_numbers(self.streams, "number")[self.queue]

    @property
    def is_graph(self) -> NDArray[np.bool_]:
        return np.asarray(self.graph != UNKNOWN)


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies and fills of memory on the GPU, in the order of start; ``queue`` as of ``Kernels``."""

    start: Column
    end: Column
    queue: Column


@dataclass(frozen=True, slots=True)
class HostRanges:
    """NVTX ranges as the host pushed and popped them, by thread and start, the outer of two that start together first.

    ``name`` is a position in ``names``.
    """

    names: Sequence[str]
    start: Column
    end: Column
    thread: Column
    name: Column

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True)
class ProjectedRange:
    """A range on one stream: from the start of its first kernel to the end of its last.

    ``level`` is 0 for the outermost. ``stream`` is None where a file does not say, ``busy`` the time of the kernels and
    graph executions in ns, None where they are not known one by one. ``row`` is the range of the host, by position.
    """

    name: str
    stream: Stream | None
    queue: int | None
    start: int
    end: int
    kernels: int
    level: int
    busy: int | None
    host_start: int | None
    host_end: int | None
    thread: int | None = None
    graphs: int = 0
    row: int | None = None

    @property
    def duration(self) -> int:
        return self.end - self.start

    @property
    def process(self) -> int | None:
        """The id of the process whose thread pushed the range."""
        if self.stream is not None and self.stream.process != UNKNOWN:
            return system_id(self.stream.process)
        return None if self.thread is None else process_id(self.thread)


class Device(NamedTuple):
    """A GPU. ``sms`` is None if the file does not have it."""

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
    minimum: int | None
    maximum: int | None
    mean: int | None = None
    grid: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None
    """Grid and block: set if sums are by them, too."""


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


def process_id(number: int) -> int:
    """The id that the system gave a process, from nsys' id of it or of one of its threads."""
    return number >> _THREAD_BITS & _ID_MASK


def thread_number(process: int, thread: int) -> int:
    """A number for a thread from the ids that the system gave it and its process, as nsys makes it."""
    return process << _THREAD_BITS | thread & _ID_MASK


def process_in_file(file: int, process: object, index: int) -> int:
    """A number for a process of one of several files, since two files may have processes of the same id.

    ``index`` distinguishes processes of a file that have no id of the system.
    """
    file_bits = (file & _FILE_MASK) << _THREAD_BITS
    has_id = isinstance(process, int) and 0 < process <= _ID_MASK
    return file_bits | process if has_id else file_bits | _NO_ID_BIT | index & _ID_MASK  # type: ignore[operator]


def system_id(process: int) -> int | None:
    """The id that the system gave a process; None if it is not known."""
    return None if process & _NO_ID_BIT else process & _ID_MASK


def file_number(process: int) -> int | None:
    """The position of the file that a process is of; None if the process is not known."""
    return None if process == UNKNOWN else process >> _THREAD_BITS & _FILE_MASK


def process_number(process: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers for processes as nsys makes them from ids of the system; -1 stays unlike all of them."""
    return np.asarray(process, dtype=np.int64) << _THREAD_BITS


def stream_numbers(streams: Sequence[Stream], field: str) -> NDArray[np.int64]:
    """Return one number of every stream."""
    return np.array([getattr(stream, field) for stream in streams], dtype=np.int64)


def empty_kernels() -> Kernels:
    times = codes = numbers = np.empty(0, dtype=np.int64)
    shape = np.empty((0, 6), dtype=np.int64)
    return Kernels(
        names=(), streams=(), start=times, end=times, queue=codes, name=codes, mangled=codes, shape=shape,
        registers=numbers, shared=numbers, graph=numbers, thread=numbers, launch_start=times, launch_end=times,
    )  # fmt: skip


def empty_copies() -> Copies:
    column = np.empty(0, dtype=np.int64)
    return Copies(column, column, column)


def possible_times(start: NDArray[Any], end: NDArray[Any]) -> NDArray[np.bool_]:
    """Return, per row, whether its times are possible: in the range of a clock, no end before its start."""
    return np.asarray((start > -MAX_TIME_NS) & (start <= end) & (end < MAX_TIME_NS))


def impossible_time_notes(noun: str, start: NDArray[Any], end: NDArray[Any]) -> Iterator[str]:
    """Notes about the rows, each a ``noun``, that are left out."""
    has_no_start = start == NO_TIME
    has_no_end = (end == NO_TIME) & ~has_no_start
    invalid = int((~possible_times(start, end) & ~has_no_start & ~has_no_end).sum())
    if count := int(has_no_end.sum()):
        yield (
            f"{units.counted(count, noun)} excluded because the end is missing (still running when the recording ended)"
        )
    if count := int(has_no_start.sum()):
        yield f"{units.counted(count, noun)} excluded because the start is missing; export the report again"
    if invalid:
        reason = "of impossible times (out of range, or an end before its start)"
        yield f"{units.counted(invalid, noun)} excluded because {reason}; export the report again"
