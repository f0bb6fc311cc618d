"""Reads CSV of ``nsys stats``: the reports cuda_gpu_trace, nvtx_gpu_proj_trace and cuda_gpu_kern_sum, and their older
names. Reports are told apart by their headings; what nsys prints before them is passed over.
"""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.errors import ImportFileError
from tui_probe.importers.mistaken import mistaken
from tui_probe.importers.nsys_model import (
    UNKNOWN,
    Copies,
    Kernels,
    KernelSum,
    NsysReport,
    ProjectedRange,
    no_copies,
    no_kernels,
)
from tui_probe.importers.text_file import lines_of, part_of, refuse_larger
from tui_probe.input_limits import CSV_OF_NSYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_UNIT: Final = re.compile(r"(.*?) \((ns|us|µs|ms|s|sec|nsec|usec|msec)\)")
_NS: Final = {"ns": 1, "nsec": 1, "us": 1e3, "µs": 1e3, "usec": 1e3, "ms": 1e6, "msec": 1e6, "s": 1e9, "sec": 1e9}
_TRACE: Final = frozenset({"Start", "Duration", "GrdX", "Strm", "Name"})
_RANGES: Final = frozenset({"Name", "Projected Start", "Projected Duration", "Lvl"})
_SUMS: Final = frozenset({"Total Time", "Instances", "Name"})
_SHAPE: Final = ("GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ")
_HOW_TO_MAKE: Final = (
    "no report of nsys stats that is known, nor an sqlite export: make one with nsys export --type sqlite REPORT, or"
    " nsys stats --format csv --report cuda_gpu_trace,nvtx_gpu_proj_trace --output . REPORT"
)
_MEGABYTE: Final = 1e6
_MOST: Final = 2.0**62
_LARGEST: Final = float(1 << 62)


class _Report:
    """One report in a file: its headings without units, factors to ns, and its rows."""

    def __init__(self, headings: Sequence[str]) -> None:
        self._at: dict[str, int] = {}
        self._factor: dict[str, float] = {}
        for position, heading in enumerate(headings):
            match = _UNIT.fullmatch(heading.strip())
            name = match[1] if match else heading.strip().split(" (MB)")[0]
            self._at.setdefault(name, position)
            self._factor.setdefault(name, _NS[match[2]] if match else 1)
        self.names = frozenset(self._at)
        self._least = max((self._at[name] for name in self.names & (_TRACE | _RANGES | _SUMS)), default=0) + 1
        self.rows: list[list[str]] = []

    def fits(self, cells: Sequence[str]) -> bool:
        """Whether these cells are a row of it."""
        return len(cells) >= self._least

    def text(self, row: Sequence[str], name: str) -> str:
        at = self._at.get(name, -1)
        return row[at].strip() if 0 <= at < len(row) else ""

    def number(self, row: Sequence[str], name: str) -> float | None:
        """A number, a time in ns; None if there is none."""
        text = self.text(row, name)
        try:
            value = float(text) * self._factor[name] if text else None
        except (ValueError, KeyError):
            return None
        return value if value is not None and abs(value) < _LARGEST else None

    def whole(self, row: Sequence[str], name: str) -> int:
        """A number, -1 if there is none."""
        value = self.number(row, name)
        return UNKNOWN if value is None else round(value)


def read_csv(paths: Sequence[Path], progress: Callable[[float], object] = lambda _: None) -> NsysReport:
    """Reports of one profile; ImportFileError if a file holds none that is known."""
    reports = [
        (path, report)
        for place, path in enumerate(paths)
        for report in _reports(path, part_of(progress, place, len(paths)))
    ]
    kernels, copies, projected, sums = no_kernels(), no_copies(), list[ProjectedRange](), list[KernelSum]()
    seen: set[str] = set()
    for path, report in reports:
        kind = _kind(report)
        if kind in seen:
            raise ImportFileError(f"{path}: another {kind} than in the files before it: import one profile at a time")
        seen.add(kind)
        if kind == "cuda_gpu_trace":
            kernels, copies = _kernels(report), _copies(report)
        elif kind == "nvtx_gpu_proj_trace":
            projected = _ranges(report)
        else:
            sums = _sums(report)
    notes = tuple(_notes(kernels, projected, sums))
    return NsysReport(tuple(map(str, paths)), kernels, copies, None, projected, {}, sums, notes)


def _reports(path: Path, progress: Callable[[float], object]) -> list[_Report]:
    """The reports of one file."""
    found: list[_Report] = []
    refuse_larger(path, CSV_OF_NSYS, "import its sqlite export: nsys export --type sqlite REPORT")
    for cells in _rows(path, progress):
        report = _Report(cells)
        if _kind(report):
            found.append(report)
        elif found and found[-1].fits(cells):
            found[-1].rows.append(cells)
    if not found:
        raise ImportFileError(f"{path}: {mistaken(path, 'nsys') or _HOW_TO_MAKE}")
    return found


def _rows(path: Path, progress: Callable[[float], object]) -> Iterator[list[str]]:
    """Each line by itself, so that no quote of nsys' messages swallows others."""
    for line in lines_of(path, progress):
        try:
            yield next(csv.reader([line.rstrip("\r\n")]), [])
        except csv.Error:
            continue


def _kind(report: _Report) -> str:
    for kind, names in (("cuda_gpu_trace", _TRACE), ("nvtx_gpu_proj_trace", _RANGES), ("cuda_gpu_kern_sum", _SUMS)):
        if names <= report.names:
            return kind
    return ""


def _kernels(report: _Report) -> Kernels:
    """The rows that have a grid; copies have none."""
    rows = [row for row in report.rows if report.text(row, "GrdX") and report.number(row, "Start") is not None]
    rows.sort(key=lambda row: report.whole(row, "Start"))
    names: dict[str, int] = {}
    codes = [names.setdefault(report.text(row, "Name"), len(names)) for row in rows]

    def column(name: str) -> list[int]:
        return [report.whole(row, name) for row in rows]

    start = np.array(column("Start"), dtype=np.int64)
    unknown = np.full(len(rows), UNKNOWN, dtype=np.int64)
    return Kernels(
        names=list(names),
        start=start,
        end=start + np.array(column("Duration"), dtype=np.int64).clip(0),
        device=np.array([_device(report.text(row, "Device")) for row in rows], dtype=np.int64),
        stream=np.array(column("Strm"), dtype=np.int64),
        process=unknown,
        name=np.array(codes, dtype=np.int64),
        mangled=unknown,
        shape=np.array([column(name) for name in _SHAPE], dtype=np.int64).reshape(len(_SHAPE), len(rows)).T,
        registers=np.array(column("Reg/Trd"), dtype=np.int64),
        shared=np.array([_shared(report, row) for row in rows], dtype=np.int64),
        thread=unknown,
        launch_start=unknown,
        launch_end=unknown,
    )


def _device(text: str) -> int:
    """``NVIDIA H100 (0)`` -> 0."""
    match = re.search(r"\((\d{1,9})\)\s*$", text)
    return int(match[1]) if match else 0


def _shared(report: _Report, row: Sequence[str]) -> int:
    """Bytes per block; nsys rounds them to thousands. Of a cell that no GPU has, the most that the table holds."""
    parts = [report.number(row, name) for name in ("StcSMem", "DymSMem")]
    return round(max(-_MOST, min(_MOST, sum(part for part in parts if part is not None) * _MEGABYTE)))


def _copies(report: _Report) -> Copies:
    rows = [row for row in report.rows if not report.text(row, "GrdX") and report.number(row, "Start") is not None]
    rows.sort(key=lambda row: report.whole(row, "Start"))
    start = np.array([report.whole(row, "Start") for row in rows], dtype=np.int64)
    length = np.array([report.whole(row, "Duration") for row in rows], dtype=np.int64).clip(0)
    device = np.array([_device(report.text(row, "Device")) for row in rows], dtype=np.int64)
    return Copies(start, start + length, device, np.array([report.whole(row, "Strm") for row in rows], dtype=np.int64))


def _ranges(report: _Report) -> list[ProjectedRange]:
    found = []
    for row in report.rows:
        start, length = report.number(row, "Projected Start"), report.number(row, "Projected Duration")
        if start is None or length is None:
            continue
        host, host_length = report.number(row, "Orig Start"), report.number(row, "Orig Duration")
        host_start = None if host is None else round(host)
        host_end = None if host is None or host_length is None else round(host + host_length)
        found.append(
            ProjectedRange(
                name=report.text(row, "Name").removeprefix(":"),
                device=None,
                stream=None,
                start=round(start),
                end=round(start + length),
                kernels=max(report.whole(row, "NumGPUOps"), 0),
                level=max(report.whole(row, "Lvl"), 0),
                busy=None,
                host_start=host_start,
                host_end=host_end,
            )
        )
    least = min((each.level for each in found), default=0)
    return [_raised(each, least) for each in sorted(found, key=lambda each: (each.start, each.level, -each.end))]


def _raised(each: ProjectedRange, least: int) -> ProjectedRange:
    """Levels count from 0 here."""
    return replace(each, level=each.level - least)


def _sums(report: _Report) -> list[KernelSum]:
    found = []
    for row in report.rows:
        total, launches = report.number(row, "Total Time"), report.number(row, "Instances")
        if total is None or launches is None:
            continue
        times = [report.number(row, name) for name in ("Med", "Min", "Max")]
        median, least, most = (None if time is None else round(time) for time in times)
        found.append(KernelSum(report.text(row, "Name"), round(launches), round(total), median, least, most))
    return found


def _notes(kernels: Kernels, projected: list[ProjectedRange], sums: list[KernelSum]) -> Iterator[str]:
    if len(kernels) or projected:
        yield "CSV of nsys stats: the number of SMs and the launching calls are not in it; the sqlite export has them"
    if projected:
        yield "ranges as nsys projected them, all streams together; their number counts copies and fills too"
    if sums and not len(kernels):
        yield "a summary: no single launches, grids and streams; --report cuda_gpu_trace has them"
