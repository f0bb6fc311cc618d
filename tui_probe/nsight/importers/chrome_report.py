"""Events of Chrome traces as one profile: processes, streams, calls and the scopes of kernels as ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.nsight.importers.chrome_events import SHAPE
from tui_probe.nsight.importers.nsys_host import CallsByKey
from tui_probe.nsight.importers.nsys_model import (
    UNKNOWN,
    Copies,
    HostRanges,
    Kernels,
    NsysReport,
    ProjectedRange,
    Stream,
    distinct_rows,
    process_number,
    ranks,
    thread_number,
)
from tui_probe.trace.kernel_identity import demangle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.nsight.importers.chrome_events import Collector


def scopes(kernels: Kernels, path: NDArray[np.int64], paths: Sequence[tuple[str, ...]]) -> list[ProjectedRange]:
    """The ranges, by start, the outer first. ``path`` gives for each kernel its scopes, by position in ``paths``."""
    if len(paths) < 2:
        return []
    found: list[ProjectedRange] = []
    for queue in np.unique(kernels.queue).tolist():
        own = np.flatnonzero(kernels.queue == queue)
        codes = path[own]
        first = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
        runs = [(own[begin:end], paths[codes[begin]]) for begin, end in zip(first, [*first[1:], len(own)], strict=True)]
        found += _of_stream(kernels, queue, runs)
    return sorted(found, key=lambda each: (each.start, each.level, -each.end))


def _of_stream(
    kernels: Kernels, queue: int, runs: list[tuple[NDArray[np.int64], tuple[str, ...]]]
) -> list[ProjectedRange]:
    """The ranges of one stream: each goes on as long as its scope and those around it do."""
    found: list[ProjectedRange] = []
    open_: list[list[NDArray[np.int64]]] = []
    before: tuple[str, ...] = ()

    def close(level: int) -> None:
        while len(open_) > level:
            found.append(_range(kernels, queue, before[len(open_) - 1], len(open_) - 1, np.concatenate(open_.pop())))

    for own, scope in runs:
        same = next((i for i, pair in enumerate(zip(before, scope, strict=False)) if pair[0] != pair[1]), None)
        close(min(len(before), len(scope)) if same is None else same)
        open_ += [[] for _ in scope[len(open_) :]]
        for parts in open_:
            parts.append(own)
        before = scope
    close(0)
    return found


def _range(kernels: Kernels, queue: int, name: str, level: int, own: NDArray[np.int64]) -> ProjectedRange:
    start, end = kernels.start[own], kernels.end[own]
    return ProjectedRange(
        name=name,
        stream=kernels.streams[queue],
        queue=queue,
        start=int(start.min()),
        end=int(end.max()),
        kernels=len(own),
        level=level,
        busy=int((end - start).sum()),
        host_start=None,
        host_end=None,
    )


if TYPE_CHECKING:
    Columns = dict[str, NDArray[Any]]

_WHERE: Final = ("process", "device", "context", "stream")
_AT_ONCE: Final = 1 << 16
"""Calls that are looked up at a time."""
_MADE_UP: Final = 1 << 23
"""Ids from here on are no process': they stand for one without a number of its own."""


def report_of(files: Sequence[str], parts: Sequence[Collector]) -> NsysReport:
    """The profile; times are from the first thing that happened.

    Millions of rows fit into memory since each column is made from one that goes then.
    """
    names, paths = _numbered([part.names for part in parts]), _numbered([part.paths for part in parts])
    tables = [_read(part, names[i], paths[i], several=len(parts) > 1) for i, part in enumerate(parts)]
    launches = _launches(parts, [table["kernels"] for table in tables])
    kernels, copies, calls, ranges = (_together([table.pop(kind) for table in tables]) for kind in _KINDS)
    _from_zero((kernels, copies, calls, ranges))
    kernels = _in_order(kernels, ("start", "end", *_WHERE, "correlation"))
    copies = _in_order(copies, ("start", "end"))
    ranges["rank"] = ranks([*names[-1]])[ranges["name"]]
    ranges = _in_order(ranges, ("thread", "start", "-end", "rank"))
    del ranges["rank"]
    readable = _demangled(kernels, [*names[-1]])
    path = kernels.pop("path")
    found = _kernels(readable, kernels, copies, calls, launches)
    host = HostRanges(found.names, ranges["start"], ranges["end"], ranges["thread"], ranges["name"])
    usable = len(host) and (found.thread != UNKNOWN).any()
    projected = () if usable else scopes(found, path, [*paths[-1]])
    devices = {number: device for part in parts for number, device in part.devices.items()}
    moved = Copies(copies["start"], copies["end"], copies["queue"])
    none = None if projected else host
    notes = tuple(_notes(files, parts, found, len(host)))
    return NsysReport(tuple(files), found, moved, none, projected, devices, (), notes)


def _launches(parts: Sequence[Collector], kernels: Sequence[Columns]) -> Columns:
    """The launch parameters of all files; the positions of kernels among them become those in all files."""
    before = 0
    tables = [part.launches.rows.taken() for part in parts]
    for rows, table in zip(kernels, tables, strict=True):
        rows["launch"] = rows["launch"] + np.int32(before)
        before += len(table[SHAPE[0]])
    return _together(tables)


class _Numbers(dict[Any, int]):
    """Names of all files with their numbers; ``own`` gives them for those of one file."""

    own: NDArray[np.int32]


def _numbered(parts: Sequence[dict[Any, int]]) -> list[_Numbers]:
    """For each file the numbers of its names in all files; the last one holds all names."""
    found: list[_Numbers] = []
    numbers: dict[Any, int] = {}
    for part in parts:
        own = np.array([numbers.setdefault(name, len(numbers)) for name in part], dtype=np.int32)
        each = _Numbers(numbers)
        each.own = own
        found.append(each)
    return found


_KINDS: Final = ("kernels", "copies", "calls", "ranges")


def _read(part: Collector, names: _Numbers, paths: _Numbers, *, several: bool) -> dict[str, Columns]:
    """The rows of one file with the numbers that names, threads and processes have in all files."""
    rows: dict[str, Columns] = {kind: getattr(part, kind).taken() for kind in _KINDS}
    own = _Processes(part, rows["calls"], several=several)
    rows["kernels"]["process"] = own.of_kernels(rows["kernels"], rows["calls"])
    rows["copies"]["process"] = np.full(len(rows["copies"]["start"]), own.alone, dtype=np.int32)
    for columns in rows.values():
        for key in ("start", "end"):
            columns[key] = columns[key] + part.base
        for key, numbers in (("name", names.own), ("path", paths.own), ("thread", own.threads)):
            if key in columns:
                columns[key] = numbers[columns[key]] if len(columns[key]) else columns[key].astype(numbers.dtype)
    return rows


class _Processes:
    """Ids for the processes of one file, and which of them launched a kernel."""

    def __init__(self, part: Collector, calls: Columns, *, several: bool) -> None:
        threads = [*part.threads]
        self._calling = {threads[thread][0] for thread in np.unique(calls["thread"]).tolist()}
        self._ids: dict[object, int] = {}
        self._number = part.number
        self.threads = np.array(
            [thread_number(self._id(process), place) for place, (process, _) in enumerate(part.threads)], dtype=np.int64
        )
        self.alone = UNKNOWN
        """The process of kernels, if there is one alone."""
        hosts = self._calling or {process for process, _ in part.threads}
        if len(hosts) == 1:
            self.alone = self._id(next(iter(hosts)))
        elif several:
            self.alone = self._id(None)

    def _id(self, process: object) -> int:
        """The process' own id, or one that no process has."""
        if isinstance(process, int) and 0 < process < _MADE_UP:
            return process
        return self._ids.setdefault(process, _MADE_UP | self._number << 8 | len(self._ids) & 0xFF)

    def of_kernels(self, kernels: Columns, calls: Columns) -> NDArray[np.int64]:
        """The process of each kernel: the only one that calls, else the only one with a call of its correlation."""
        if len(self._calling) < 2:
            return np.full(len(kernels["start"]), self.alone, dtype=np.int32)
        pairs = np.unique(np.column_stack((calls["correlation"], self.threads[calls["thread"]] >> 24)), axis=0)
        numbers, first, counts = np.unique(pairs[:, 0], return_index=True, return_counts=True)
        places = np.searchsorted(numbers, kernels["correlation"]).clip(max=len(numbers) - 1)
        known = (numbers[places] == kernels["correlation"]) & (counts[places] == 1)
        return np.where(known, pairs[first[places], 1], UNKNOWN)


def _together(parts: list[Columns]) -> Columns:
    return parts[0] if len(parts) == 1 else {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _from_zero(tables: Sequence[Columns]) -> None:
    """All times from the earliest."""
    first = min((int(rows["start"].min()) for rows in tables if len(rows["start"])), default=0)
    for rows in tables:
        for key in ("start", "end"):
            rows[key] = rows[key] - first


def _in_order(rows: Columns, keys: Sequence[str]) -> Columns:
    """The rows sorted by these columns, the first one first; ``-`` turns one around."""
    first, second = (rows[key] for key in keys[:2])
    after = (first[1:] > first[:-1]) | ((first[1:] == first[:-1]) & (second[1:] > second[:-1]))
    if after.all():
        return rows
    order = np.lexsort([-rows[key[1:]] if key.startswith("-") else rows[key] for key in reversed(keys)])
    return {key: rows.pop(key)[order] for key in [*rows]}


def _demangled(kernels: Columns, names: list[str]) -> list[str]:
    """All names, with those of mangled kernels as they were written in C++ behind them; Proton writes mangled names."""
    codes = {name: code for code, name in enumerate(names)}
    readable = np.arange(len(names), dtype=np.int32)
    for code in np.unique(kernels["name"]).tolist():
        readable[code] = codes.setdefault(demangle(names[code]), len(codes))
    mangled = np.where(readable == np.arange(len(names)), UNKNOWN, np.arange(len(names))).astype(np.int32)
    own = kernels["name"]
    kernels["mangled"], kernels["name"] = mangled[own], readable[own]
    return [*codes]


def _kernels(names: list[str], rows: Columns, copies: Columns, calls: Columns, launches: Columns) -> Kernels:
    """The kernels with their streams and the calls that launched them; ``copies`` get their streams, too."""
    count = len(rows["start"])
    places, queue = distinct_rows([np.concatenate((rows[key], copies[key])) for key in _WHERE])
    copies["queue"], queue = queue[count:].copy(), queue[:count].copy()
    for key in _WHERE[1:]:
        del rows[key]
    thread, launch_start, launch_end = _calls_of(rows, calls)
    own = rows.pop("launch")
    return Kernels(
        names=names,
        streams=[Stream(*place) for place in places],
        start=rows.pop("start"),
        end=rows.pop("end"),
        queue=queue,
        name=rows.pop("name"),
        mangled=rows.pop("mangled"),
        shape=np.stack([launches[side] for side in SHAPE], axis=1)[own],
        registers=launches["registers"][own],
        shared=launches["shared"][own],
        graph=np.broadcast_to(np.int32(UNKNOWN), count),
        thread=thread,
        launch_start=launch_start,
        launch_end=launch_end,
    )


def _calls_of(kernels: Columns, calls: Columns) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Thread, start and end of the call of each kernel."""
    keyed = CallsByKey(process_number(kernels.pop("process")), kernels.pop("correlation"))
    for begin in range(0, len(calls["start"]), _AT_ONCE):
        some = (calls[key][begin : begin + _AT_ONCE] for key in ("thread", "start", "end", "correlation"))
        keyed.take(np.column_stack([*some]))
    calls.clear()
    return keyed.columns()


def _notes(files: Sequence[str], parts: Sequence[Collector], kernels: Kernels, ranges: int) -> Iterator[str]:
    for file, part in zip(files, parts, strict=True):
        if part.is_cut_off:
            yield f"{file}: cut off after {part.count} events; what follows is missing"
        if part.odd:
            yield f"{file}: events left out, since their times cannot be: {part.odd}"
    unknown = int((kernels.thread == UNKNOWN).sum())
    if unknown and ranges:
        yield f"kernels without the call that launched them, so in no range: {unknown}"
