"""Read timelines: CSV of ``nsys stats`` here; sqlite exports and Chrome traces by their own modules."""

from __future__ import annotations

import re
from array import array
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.errors import ImportFileError
from tui_probe.input_limits import CSV_OF_NSYS
from tui_probe.nsight.importers.file_kinds import SQLITE_MARK, is_chrome, json_advice, mismatch_reason
from tui_probe.nsight.importers.file_reading import file_progress, first_bytes, refuse_larger
from tui_probe.nsight.importers.formats import NSYS_SQLITE, NSYS_STATS, report_rows
from tui_probe.nsight.importers.nsys_model import (
    UNKNOWN,
    Copies,
    Kernels,
    KernelSum,
    NsysReport,
    ProjectedRange,
    Stream,
    distinct_rows,
    empty_copies,
    empty_kernels,
    thread_number,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.nsight.importers.formats import StatsReport

_SHAPE: Final = ("GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ")
_TRACE_COLUMNS: Final = ("start", "end", "device", "context", "stream", "name", "registers", "shared", *_SHAPE)
"""Columns of a trace of the GPU as they are kept; times in ns, shared memory in bytes."""
_START_ORDER: Final = ("start", "end", "device", "context", "stream", "name")
"""Columns by which rows are sorted, the first one first."""
_FORMAT_ADVICE: Final = (
    f"neither a known report of nsys stats nor an sqlite export; create such a file with {NSYS_SQLITE.made_with}, or"
    f" {NSYS_STATS.made_with}"
)
_MAX_BYTES: Final = 2.0**62
"""The most bytes that a column of 64 bits is given: sums of columns must not overflow."""
_KERNEL_CATEGORY: Final = "CUDA_KERNEL"
"""The category of kernels in a summary of all operations."""
_SUM_REPORTS: Final = ("cuda_gpu_kern_sum", "cuda_gpu_kern_gb_sum", "cuda_gpu_sum")
"""Summaries of the same kernels; the first that is there counts."""


def read_csv(paths: Sequence[Path], progress: Callable[[float], object] = lambda _: None) -> NsysReport:
    """Reports of one profile; ImportFileError if a file holds none that is known."""
    trace, ranges, sums = _GpuTrace(), list[ProjectedRange](), dict[str, list[KernelSum]]()
    kinds: set[str] = set()
    for index, path in enumerate(paths):
        has_report = False
        refuse_larger(path, CSV_OF_NSYS, "import its sqlite export instead: nsys export --type sqlite REPORT")
        for report, row in report_rows(path, file_progress(progress, index, len(paths))):
            kind = "" if report.kind is None else report.kind.name
            has_report = True
            if not row:
                _check_once(path, kind, kinds)
            elif kind == "cuda_gpu_trace":
                trace.add(report, row)
            elif kind == "nvtx_gpu_proj_trace":
                ranges.append(_read_range(report, row))
            elif report.text(row, "Category") in ("", _KERNEL_CATEGORY):
                sums.setdefault(kind, []).append(_read_sum(report, row))
        if not has_report:
            raise ImportFileError(f"{path}: {mismatch_reason(path, 'nsys') or _FORMAT_ADVICE}")
    kernels, copies = trace.columns()
    projected = _sorted_ranges(ranges)
    kernel_sums = next((rows for rows in map(sums.get, _SUM_REPORTS) if rows), [])
    notes = tuple(_notes(kernels, projected, kernel_sums))
    return NsysReport(tuple(map(str, paths)), kernels, copies, None, projected, {}, kernel_sums, notes)


def _check_once(path: Path, kind: str, kinds: set[str]) -> None:
    """ImportFileError if there was such a report before."""
    if kind in kinds:
        raise ImportFileError(f"{path}: its {kind} differs from the previous files; import one profile at a time")
    kinds.add(kind)


class _GpuTrace:
    """Rows of a trace of the GPU as columns; those without a grid are copies."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._devices: dict[str, int] = {}
        self._columns = {name: array("q") for name in _TRACE_COLUMNS}

    def add(self, report: StatsReport, row: Sequence[str]) -> None:
        name, device = report.text(row, "Name"), report.text(row, "Device")
        start = report.integer(row, "Start")
        values = (
            start,
            start + max(report.integer(row, "Duration"), 0),
            self._devices.setdefault(device, _device_number(device)),
            report.integer(row, "Ctx"),
            report.integer(row, "Strm"),
            self._names.setdefault(name, len(self._names)),
            report.integer(row, "Reg/Trd"),
            _shared_bytes(report, row),
            *(report.integer(row, side) for side in _SHAPE),
        )
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)

    def columns(self) -> tuple[Kernels, Copies]:
        """Kernels and copies, in the order of start, in any order of the rows."""
        if not self._columns["start"]:
            return empty_kernels(), empty_copies()
        unsorted_columns = {name: np.array(column, dtype=np.int64) for name, column in self._columns.items()}
        order = np.lexsort([unsorted_columns[name] for name in reversed(_START_ORDER)])
        columns: dict[str, NDArray[Any]] = {name: column[order] for name, column in unsorted_columns.items()}
        places, columns["queue"] = distinct_rows([columns[name] for name in ("device", "context", "stream")])
        streams = [Stream(UNKNOWN, *place) for place in places]
        is_kernel = columns[_SHAPE[0]] != UNKNOWN
        copies = Copies(*(columns[name][~is_kernel] for name in ("start", "end", "queue")))
        kernels = {name: column[is_kernel] for name, column in columns.items()}
        return _kernels([*self._names], streams, kernels), copies


def _kernels(names: list[str], streams: list[Stream], columns: Mapping[str, NDArray[Any]]) -> Kernels:
    """Return kernels whose launching calls are not known, from the columns of their rows."""
    unknown = np.full(len(columns["start"]), UNKNOWN, dtype=np.int64)
    return Kernels(
        names=names,
        streams=streams,
        start=columns["start"],
        end=columns["end"],
        queue=columns["queue"],
        name=columns["name"],
        mangled=unknown,
        shape=np.stack([columns[side] for side in _SHAPE], axis=1),
        registers=columns["registers"],
        shared=columns["shared"],
        graph=unknown,
        thread=unknown,
        launch_start=unknown,
        launch_end=unknown,
    )


def _device_number(text: str) -> int:
    """``NVIDIA H100 (0)`` -> 0."""
    match = re.search(r"\((\d{1,9})\)\s*$", text)
    return int(match[1]) if match else 0


def _shared_bytes(report: StatsReport, row: Sequence[str]) -> int:
    """Bytes per block; nsys rounds them to thousands. Of a cell that no GPU has, the most that the table holds."""
    parts = [report.number(row, name) for name in ("StcSMem", "DymSMem")]
    return round(max(-_MAX_BYTES, min(_MAX_BYTES, sum(part for part in parts if part is not None))))


def _read_range(report: StatsReport, row: Sequence[str]) -> ProjectedRange:
    """Read one range; its kind says that start and duration are numbers."""
    start, length = report.integer(row, "Projected Start"), report.integer(row, "Projected Duration")
    host, host_length = report.number(row, "Orig Start"), report.number(row, "Orig Duration")
    process, thread = report.integer(row, "PID"), report.integer(row, "TID")
    return ProjectedRange(
        name=report.text(row, "Name").removeprefix(":"),
        stream=None,
        queue=None,
        start=start,
        end=start + max(length, 0),
        kernels=max(report.integer(row, "NumGPUOps"), 0),
        level=max(report.integer(row, "Lvl"), 0),
        busy=None,
        host_start=None if host is None else round(host),
        host_end=None if host is None or host_length is None else round(host + host_length),
        thread=None if UNKNOWN in (process, thread) else thread_number(process, thread),
    )


def _sorted_ranges(ranges: list[ProjectedRange]) -> list[ProjectedRange]:
    """Sort ranges by start, the outer first; levels count from 0."""
    outermost_level = min((span.level for span in ranges), default=0)
    ranges = sorted(ranges, key=lambda span: (span.start, span.level, -span.end, span.name))
    return [replace(span, level=span.level - outermost_level) for span in ranges]


def _read_sum(report: StatsReport, row: Sequence[str]) -> KernelSum:
    times = [report.number(row, name) for name in ("Med", "Min", "Max", "Avg")]
    median, minimum, maximum, mean = (None if time is None else round(time) for time in times)
    name = report.text(row, "Name") or report.text(row, "Operation")
    launches, total = report.integer(row, "Instances"), report.integer(row, "Total Time")
    grid, block = report.extent(row, "GridXYZ"), report.extent(row, "BlockXYZ")
    return KernelSum(name, launches, total, median, minimum, maximum, mean, grid, block)


def _notes(kernels: Kernels, ranges: list[ProjectedRange], sums: list[KernelSum]) -> Iterator[str]:
    if len(kernels) or ranges:
        yield (
            "CSV of nsys stats has no processes, no number of SMs and no launch calls; to see them, export to sqlite"
        )
    if ranges:
        yield "nsys projected the ranges over all streams; the counts of a range include copies and memsets"
    if sums and not len(kernels):
        yield "this summary has no individual launches, grids or streams; export with --report cuda_gpu_trace"


def read_nsys(paths: Iterable[Path | str], progress: Callable[[float], object] = lambda _: None) -> NsysReport:
    """Read a profile. ImportFileError names the unusable file and the fix. ``progress`` is called with the share
    read.
    """
    files = [Path(path) for path in paths]
    if not files:
        raise ImportFileError("no file: pass an sqlite export of Nsight Systems, or CSV files of nsys stats")
    other_files = [path for path in files if not is_chrome(path)]
    if not other_files:
        from tui_probe.nsight.importers.chrome_report import read_chrome

        return read_chrome(files, progress)
    if len(other_files) < len(files):
        first_bytes(other_files[0])  # raises an error for a file that is packed or cannot be read
        problem = json_advice(other_files[0]) or "not a Chrome trace"
        raise ImportFileError(
            f"{other_files[0]}: {problem}, but the other files are Chrome traces; import files of one kind"
        )
    beginnings = [first_bytes(path, len(SQLITE_MARK)) for path in files]
    databases = [path for path, start in zip(files, beginnings, strict=True) if start == SQLITE_MARK]
    if databases and len(files) > 1:
        raise ImportFileError(f"{databases[0]}: an sqlite export must be the only file")
    for path in files:
        if path.suffix in (".nsys-rep", ".qdrep"):
            raise ImportFileError(
                f"{path}: a report of Nsight Systems, which only nsys reads; run nsys export --type sqlite {path}"
            )
    if databases:
        from tui_probe.nsight.importers.nsys_sqlite import read_sqlite

        return read_sqlite(files[0], progress)

    return read_csv(files, progress)
