"""Events of Chrome traces as one profile: processes, streams, calls and the scopes of kernels as ranges."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import numpy as np

from tui_probe.errors import ImportFileError
from tui_probe.nsight.importers.chrome_events import QUEUE, SHAPE, Collector, read_events
from tui_probe.nsight.importers.file_reading import file_progress
from tui_probe.nsight.importers.nsys_host import CallsByKey
from tui_probe.nsight.importers.nsys_model import (
    UNKNOWN,
    Copies,
    HostRanges,
    Kernels,
    NsysReport,
    ProjectedRange,
    SharedRows,
    Stream,
    compact,
    distinct_rows,
    process_in_file,
    process_number,
    ranks,
    thread_number,
)
from tui_probe.trace.kernel_status import demangle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.nsight.importers.nsys_model import Column

Name = TypeVar("Name")
_CALLS_PER_CHUNK: Final = 1 << 16
"""Calls that are looked up at a time."""
_THREAD_BITS: Final = 24
"""Bits of a thread's number below that of its process."""
_KINDS: Final = ("kernels", "kinds", "copies", "calls", "ranges")


def scope_ranges(kernels: Kernels, path: NDArray[np.int64], paths: Sequence[tuple[str, ...]]) -> list[ProjectedRange]:
    """The ranges, by start, the outer first. ``path`` gives for each kernel its scopes, by position in ``paths``."""
    if len(paths) < 2:
        return []
    ranges: list[ProjectedRange] = []
    for queue in np.unique(kernels.queue).tolist():
        on_queue = np.flatnonzero(kernels.queue == queue)
        codes = path[on_queue]
        run_starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
        runs = [
            (on_queue[begin:end], paths[codes[begin]])
            for begin, end in zip(run_starts, [*run_starts[1:], len(on_queue)], strict=True)
        ]
        ranges += _ranges_of_stream(kernels, queue, runs)
    return sorted(ranges, key=lambda scope: (scope.start, scope.level, -scope.end))


def _ranges_of_stream(
    kernels: Kernels, queue: int, runs: list[tuple[NDArray[np.int64], tuple[str, ...]]]
) -> list[ProjectedRange]:
    """The ranges of one stream: each continues as long as its scope and those around it do.

    ``runs`` are successive kernels, by position, with the names of the scopes around them, the outermost first.
    """
    ranges: list[ProjectedRange] = []
    open_scopes: list[list[NDArray[np.int64]]] = []
    """Kernels of each scope that is not closed, by level."""
    path: tuple[str, ...] = ()

    def close(level: int) -> None:
        """Make ranges of the scopes from this level on, the innermost first."""
        while len(open_scopes) > level:
            positions = np.concatenate(open_scopes.pop())
            ranges.append(_range(kernels, queue, path[len(open_scopes)], len(open_scopes), positions))

    for positions, next_path in runs:
        close(_common_levels(path, next_path))
        open_scopes += [[] for _ in next_path[len(open_scopes) :]]
        for parts in open_scopes:
            parts.append(positions)
        path = next_path
    close(0)
    return ranges


def _common_levels(path: tuple[str, ...], next_path: tuple[str, ...]) -> int:
    """Return the number of outermost scopes that two paths have in common."""
    common = takewhile(lambda names: names[0] == names[1], zip(path, next_path, strict=False))
    return sum(1 for _ in common)


def _range(kernels: Kernels, queue: int, name: str, level: int, positions: NDArray[np.int64]) -> ProjectedRange:
    start, end = kernels.start[positions], kernels.end[positions]
    return ProjectedRange(
        name=name,
        stream=kernels.streams[queue],
        queue=queue,
        start=int(start.min()),
        end=int(end.max()),
        kernels=len(positions),
        level=level,
        busy=int((end - start).sum()),
        host_start=None,
        host_end=None,
    )


if TYPE_CHECKING:
    Columns = dict[str, NDArray[Any]]
    Calls = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
    """Thread, start and end of calls."""


def make_report(files: Sequence[str], parts: Sequence[Collector]) -> NsysReport:
    """The profile; times are from the first thing that happened.

    Millions of rows fit into memory since each column is made from one that goes then.
    """
    names, paths = _number_all([part.names for part in parts]), _number_all([part.paths for part in parts])
    tables = [
        _read_rows(part, names.by_file[i], paths.by_file[i], has_other_files=len(parts) > 1)
        for i, part in enumerate(parts)
    ]
    threads = _number_threads(tables)
    _renumber_kinds(tables)
    kernels, kinds, copies, calls, ranges = (_concatenated([table.pop(kind) for table in tables]) for kind in _KINDS)
    del tables
    _shift_to_zero((kernels, copies, calls, ranges))
    streams = _number_streams(kinds, copies)
    kernels = _kernels_in_order(kernels, kinds)
    copies = _copies_in_order(copies)
    readable_names = _add_demangled(kinds, names.names)
    all_kernels = _kernels(readable_names, streams, kernels, kinds, _launch_calls(kernels, kinds, calls, threads))
    host = _host_ranges(all_kernels.names, ranges, threads, ranks(names.names))
    has_host_ranges = len(host) and (all_kernels.thread != UNKNOWN).any()
    projected = () if has_host_ranges else scope_ranges(all_kernels, kinds["path"][kernels["kind"]], paths.names)
    devices = {number: device for part in parts for number, device in part.devices.items()}
    all_copies = Copies(copies["start"], copies["end"], copies["queue"])
    notes = tuple(_notes(files, parts, all_kernels, len(host)))
    return NsysReport(tuple(files), all_kernels, all_copies, None if projected else host, projected, devices, (), notes)


def _renumber_kinds(tables: Sequence[dict[str, Columns]]) -> None:
    """Positions of kernels among the kinds of their file become those among the kinds of all files."""
    kind_count = 0
    for table in tables:
        if kind_count:
            table["kernels"]["kind"] = table["kernels"]["kind"] + np.int32(kind_count)
        kind_count += len(table["kinds"]["name"])


def _number_threads(tables: Sequence[dict[str, Columns]]) -> NDArray[np.int64]:
    """The numbers of all threads, ascending; rows get positions among them."""
    numbers, positions = np.unique(
        np.concatenate([table["threads"]["number"] for table in tables]), return_inverse=True
    )
    thread_count = 0
    for table in tables:
        count = len(table.pop("threads")["number"])
        codes = compact(positions.reshape(-1)[thread_count : thread_count + count])
        thread_count += count
        for kind in ("calls", "ranges"):
            column = table[kind]["thread"]
            table[kind]["thread"] = codes[column] if len(column) else column
    return np.asarray(numbers, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _NumberedNames(Generic[Name]):
    """Distinct names of all files, and for each file the positions of its names among them."""

    names: list[Name]
    by_file: list[NDArray[Any]]


def _number_all(parts: Sequence[Mapping[Name, int]]) -> _NumberedNames[Name]:
    """Number the names of all files, in the order in which they come; each part is of one file."""
    numbers: dict[Name, int] = {}
    by_file = [
        np.array(compact(np.array([numbers.setdefault(name, len(numbers)) for name in part], dtype=np.int32)))
        for part in parts
    ]
    return _NumberedNames(list(numbers), by_file)


def _read_rows(
    part: Collector, names: NDArray[Any], paths: NDArray[Any], *, has_other_files: bool
) -> dict[str, Columns]:
    """Return the rows of one file with the numbers that names and processes have in all files, and of its threads.

    ``names`` and ``paths`` are the numbers over all files, by the number in this file.
    """
    rows: dict[str, Columns] = {
        kind: (part.kinds.rows if kind == "kinds" else getattr(part, kind)).take_columns() for kind in _KINDS
    }
    processes = _Processes(part, rows["calls"], has_other_files=has_other_files)
    rows["threads"] = {"number": processes.threads}
    processes.add_to_kinds(rows)
    processes.add_to_copies(rows)
    for columns in rows.values():
        if "start" in columns:
            columns["start"] = columns["start"].astype(np.int64, copy=False)
            columns["start"] += part.base
        for key, numbers in (("name", names), ("path", paths)):
            if key in columns and len(columns[key]):
                columns[key] = numbers[columns[key]]
    return rows


class _Processes:
    """Ids for the processes of one file, and which of them launched a kernel."""

    def __init__(self, part: Collector, calls: Columns, *, has_other_files: bool) -> None:
        threads = [*part.threads]
        self._calling_processes = {threads[thread][0] for thread in np.unique(calls["thread"]).tolist()}
        self._numbers: dict[object, int] = {}
        self._file = part.number
        self.threads = np.array(
            [thread_number(self._id(process), place) for place, (process, _) in enumerate(part.threads)], dtype=np.int64
        )
        self.only_process = UNKNOWN
        """The process of kernels, if there is one only; of several files one that no other file has."""
        hosts = self._calling_processes or {process for process, _ in part.threads}
        if len(hosts) == 1:
            self.only_process = self._id(next(iter(hosts)))
        elif has_other_files:
            self.only_process = self._id(None)

    def _id(self, process: object) -> int:
        """A number that no other process of this or another file has."""
        return process_in_file(self._file, process, self._numbers.setdefault(process, len(self._numbers)))

    def add_to_kinds(self, rows: Mapping[str, Columns]) -> None:
        """Add the process to each kind of kernel; a kind in several processes is split."""
        kernels, kinds = rows["kernels"], rows["kinds"]
        if len(self._calling_processes) < 2:
            kinds["process"] = np.full(len(kinds["name"]), self.only_process, dtype=np.int64)
            return
        pairs, kernels["kind"] = distinct_rows([self._processes_by_call(kernels, rows["calls"]), kernels["kind"]])
        process, old_kinds = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        for key in [*kinds]:
            kinds[key] = kinds[key][old_kinds]
        kinds["process"] = process

    def add_to_copies(self, rows: Mapping[str, Columns]) -> None:
        """Add the process to each copy."""
        copies = rows["copies"]
        several = len(self._calling_processes) > 1
        by_file = np.full(len(copies["start"]), self.only_process, dtype=np.int64)
        copies["process"] = self._processes_by_call(copies, rows["calls"]) if several else by_file
        del copies["correlation"]

    def _processes_by_call(self, kernels: Columns, calls: Columns) -> NDArray[np.int64]:
        """The process of each kernel or copy: the only one with a call of its correlation."""
        pairs = np.unique(
            np.column_stack((calls["correlation"], self.threads[calls["thread"]] >> _THREAD_BITS)), axis=0
        )
        numbers, first_pairs, counts = np.unique(pairs[:, 0], return_index=True, return_counts=True)
        positions = np.searchsorted(numbers, kernels["correlation"]).clip(max=len(numbers) - 1)
        is_unique = (numbers[positions] == kernels["correlation"]) & (counts[positions] == 1)
        return np.where(is_unique, pairs[first_pairs[positions], 1], self.only_process)


def _concatenated(parts: list[Columns]) -> Columns:
    return parts[0] if len(parts) == 1 else {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _shift_to_zero(tables: Sequence[Columns]) -> None:
    """All times from the earliest."""
    earliest = min((int(rows["start"].min()) for rows in tables if len(rows["start"])), default=0)
    for rows in tables:
        rows["start"] -= earliest


def _set_ends(rows: Columns) -> None:
    """Ends instead of lengths."""
    rows["end"] = rows["start"] + rows.pop("length")


def _is_ascending(major: NDArray[Any], minor: NDArray[Any]) -> bool:
    """Return whether each row is behind the one before it."""
    is_later = major[1:] == major[:-1]
    is_later &= minor[1:] > minor[:-1]
    is_later |= major[1:] > major[:-1]
    return bool(is_later.all())


def _reorder(rows: Columns, order: NDArray[np.int64]) -> None:
    for key in [*rows]:
        rows[key] = rows[key][order]


def _number_streams(kinds: Columns, copies: Columns) -> list[Stream]:
    """All streams, ascending; kinds of kernels and copies get their positions instead of their numbers."""
    places, queue = distinct_rows(
        [np.concatenate((kinds[key], copies.pop(key)), dtype=np.int64) for key in ("process", *QUEUE)]
    )
    kinds["queue"], copies["queue"] = queue[: len(kinds["name"])], queue[len(kinds["name"]) :].copy()
    return [Stream(*place) for place in places]


def _kernels_in_order(rows: Columns, kinds: Columns) -> Columns:
    """Sort rows by start, end, stream and correlation."""
    _set_ends(rows)
    if not _is_ascending(rows["start"], rows["end"]):
        queue = compact(kinds["queue"])[rows["kind"]]
        _reorder(rows, np.lexsort([rows["correlation"], queue, rows["end"], rows["start"]]))
    return rows


def _copies_in_order(rows: Columns) -> Columns:
    """Sort rows by start and end."""
    _set_ends(rows)
    if not _is_ascending(rows["start"], rows["end"]):
        _reorder(rows, np.lexsort([rows["end"], rows["start"]]))
    return rows


def _host_ranges(
    names: Sequence[str], rows: Columns, threads: NDArray[np.int64], rank: NDArray[np.int32]
) -> HostRanges:
    """The ranges by thread and start, the outer of two that start together first."""
    _set_ends(rows)
    if not _is_ascending(rows["thread"], rows["start"]):
        _reorder(rows, np.lexsort([rank[rows["name"]], -rows["end"], rows["start"], rows["thread"]]))
    return HostRanges(
        names, rows["start"], rows["end"], _thread_numbers(threads, rows["thread"]), compact(rows["name"])
    )


def _thread_numbers(threads: NDArray[np.int64], codes: NDArray[Any]) -> Column:
    """The numbers of threads that are given by position."""
    return compact(compact(threads)[codes]) if len(codes) else codes


def _add_demangled(kinds: Columns, names: list[str]) -> list[str]:
    """All names, with those of mangled kernels as they were written in C++ behind them; Proton writes mangled names."""
    codes = {name: code for code, name in enumerate(names)}
    readable_codes = np.arange(len(names), dtype=np.int32)
    for code in np.unique(kinds["name"]).tolist():
        readable_codes[code] = codes.setdefault(demangle(names[code]), len(codes))
    mangled = np.where(readable_codes == np.arange(len(names)), UNKNOWN, np.arange(len(names))).astype(np.int32)
    original_names = kinds["name"]
    kinds["mangled"], kinds["name"] = mangled[original_names], readable_codes[original_names]
    return [*codes]


def _kernels(names: list[str], streams: list[Stream], rows: Columns, kinds: Columns, calls: Calls) -> Kernels:
    """The kernels with what their kinds have in common and the calls that launched them."""
    kind = compact(rows["kind"])
    queue, name, mangled = (compact(kinds[key])[kind] for key in ("queue", "name", "mangled"))
    thread, launch_start, launch_end = calls
    return Kernels(
        names=names,
        streams=streams,
        start=rows["start"],
        end=rows["end"],
        queue=compact(queue),
        name=compact(name),
        mangled=compact(mangled),
        shape=SharedRows(np.stack([kinds[side] for side in SHAPE], axis=1), kind),
        registers=SharedRows(kinds["registers"], kind),
        shared=SharedRows(kinds["shared"], kind),
        graph=np.broadcast_to(np.int32(UNKNOWN), len(kind)),
        thread=compact(thread),
        launch_start=launch_start,
        launch_end=launch_end,
    )


def _launch_calls(kernels: Columns, kinds: Columns, calls: Columns, threads: NDArray[np.int64]) -> Calls:
    """Thread, start and end of the call of each kernel."""
    process = compact(process_number(kinds["process"]))
    keyed = CallsByKey(process[kernels["kind"]], kernels.pop("correlation"))
    for begin in range(0, len(calls["start"]), _CALLS_PER_CHUNK):
        thread, start, length, correlation = (
            calls[key][begin : begin + _CALLS_PER_CHUNK] for key in ("thread", "start", "length", "correlation")
        )
        keyed.add_calls(np.column_stack((threads[thread], start, start + length, correlation)))
    calls.clear()
    return keyed.columns()


def _notes(files: Sequence[str], parts: Sequence[Collector], kernels: Kernels, ranges: int) -> Iterator[str]:
    for file, part in zip(files, parts, strict=True):
        if part.is_cut_off:
            yield f"{file}: truncated after {part.count} events; later events are missing"
        if part.invalid_count:
            yield f"{file}: events excluded because of impossible times: {part.invalid_count}"
    unknown = int((kernels.thread == UNKNOWN).sum())
    if unknown and ranges:
        yield (
            f"kernels not assigned to an NVTX range, because the report does not contain their launch calls: {unknown}"
        )


def read_chrome(paths: Sequence[Path], progress: Callable[[float], object] = lambda _: None) -> NsysReport:
    """Read a profile of one file per process. ImportFileError names the file that cannot be used."""
    parts = [
        read_events(path, number, file_progress(progress, number, len(paths))) for number, path in enumerate(paths)
    ]
    report = make_report([str(path) for path in paths], parts)
    if not len(report.kernels):
        raise ImportFileError(_no_kernels_text(paths, parts))
    return report


def _no_kernels_text(paths: Sequence[Path], parts: Sequence[Collector]) -> str:
    """Explain that there is no kernel: a file is cut off, or none was recorded."""
    for path, part in zip(paths, parts, strict=True):
        if part.is_cut_off:
            return f"{path}: truncated after {part.count} events, before the first kernel; copy or record it again"
    return f"{paths[0]}: a Chrome trace without GPU kernels; record it with CUDA activities"
