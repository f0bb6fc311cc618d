"""File formats of other profilers: names, versions, commands, and the CSV reports of ``nsys stats``."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.nsight.importers.file_reading import lines_of
from tui_probe.nsight.importers.nsys_model import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_HEADING_WITH_UNIT: Final = re.compile(r"(.*?)\s*\((\S+)\)")
_TIMES: Final = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9} | {
    "nsec": 1.0, "usec": 1e3, "msec": 1e6, "sec": 1e9, "seconds": 1e9, "min": 60e9, "minutes": 60e9, "hours": 3600e9,
}  # fmt: skip
_SIZES: Final = {"B": 1.0, "bytes": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12} | {
    "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40,
}  # fmt: skip
_FACTORS: Final = _TIMES | _SIZES
_SPELLINGS: Final = {
    "Average": "Avg", "Minimum": "Min", "Maximum": "Max", "Median": "Med", "Proj Start": "Projected Start",
    "Proj Duration": "Projected Duration", "Dur": "Duration", "Num GPU Ops": "NumGPUOps",
}  # fmt: skip
"""Headings of some versions, and those that stand for them here."""
_MAX_NUMBER: Final = float(1 << 62)
_MIN_HEADINGS: Final = 3
"""Cells from which on a line without any number is one of headings."""
_SUM_HEADINGS: Final = ("Total Time", "Instances")


class ReportKind(NamedTuple):
    """A report: the headings by which it is known, none that another kind has, and those that are numbers in a row."""

    name: str
    headings: frozenset[str]
    numbers: tuple[str, ...]
    excluded_headings: frozenset[str] = frozenset()


_TRACE: Final = ReportKind(
    "cuda_gpu_trace", frozenset({"Start", "Duration", "GrdX", "Strm", "Name"}), ("Start", "Duration")
)
_RANGES: Final = ReportKind(
    "nvtx_gpu_proj_trace",
    frozenset({"Name", "Projected Start", "Projected Duration", "Lvl"}),
    ("Projected Start", "Projected Duration"),
)
_SUMS: Final = ReportKind(
    "cuda_gpu_kern_sum",
    frozenset({*_SUM_HEADINGS, "Name"}),
    _SUM_HEADINGS,
    frozenset({"GridXYZ", "Category", "Source", "Range"}),
)
_SUMS_BY_SHAPE: Final = ReportKind(
    "cuda_gpu_kern_gb_sum", frozenset({*_SUM_HEADINGS, "GridXYZ", "BlockXYZ", "Name"}), _SUM_HEADINGS
)
_SUMS_OF_ALL: Final = ReportKind("cuda_gpu_sum", frozenset({*_SUM_HEADINGS, "Category", "Operation"}), _SUM_HEADINGS)
REPORT_KINDS: Final = (_TRACE, _RANGES, _SUMS, _SUMS_BY_SHAPE, _SUMS_OF_ALL)
"""The reports that are read."""


class StatsReport:
    """One report in a file: its headings in one spelling and without units, factors to ns and bytes, and its rows."""

    def __init__(self, headings: Sequence[str]) -> None:
        self._positions: dict[str, int] = {}
        self._factors: dict[str, float] = {}
        for position, heading in enumerate(headings):
            match = _HEADING_WITH_UNIT.fullmatch(heading.strip())
            has_unit = match is not None and match[2] in _FACTORS
            name = match[1] if match is not None and has_unit else heading.strip()
            name = _SPELLINGS.get(name, name)
            self._positions.setdefault(name, position)
            self._factors.setdefault(name, _FACTORS[match[2]] if match is not None and has_unit else 1.0)
        self.kind = next((kind for kind in REPORT_KINDS if self._matches(kind)), None)

    def _matches(self, kind: ReportKind) -> bool:
        names = self._positions.keys()
        return kind.headings <= names and not kind.excluded_headings & names

    def is_row(self, cells: Sequence[str]) -> bool:
        """Return whether a line below the headings is a row."""
        return self.kind is not None and all(self.number(cells, name) is not None for name in self.kind.numbers)

    def text(self, row: Sequence[str], name: str) -> str:
        position = self._positions.get(name, -1)
        return row[position].strip() if 0 <= position < len(row) else ""

    def number(self, row: Sequence[str], name: str) -> float | None:
        """A number, a time in ns, a size in bytes; None if there is none."""
        value = parse_cell(self.text(row, name))
        value = None if value is None else value * self._factors[name]
        return value if value is not None and abs(value) < _MAX_NUMBER else None

    def integer(self, row: Sequence[str], name: str) -> int:
        """A number, -1 if there is none."""
        value = self.number(row, name)
        return UNKNOWN if value is None else round(value)

    def extent(self, row: Sequence[str], name: str) -> tuple[int, ...] | None:
        """``  4    2    1`` -> (4, 2, 1)."""
        sides = [int(side) for side in re.findall(r"\d{1,10}", self.text(row, name))]
        return tuple(sides) if len(sides) == 3 else None


def parse_cell(text: str) -> float | None:
    """The number in a cell; None if there is none."""
    try:
        return float(text) if text else None
    except ValueError:
        return None


def report_rows(path: Path, progress: Callable[[float], object]) -> Iterator[tuple[StatsReport, list[str]]]:
    """The rows of the reports of one file that are known, each report first with an empty row."""
    report: StatsReport | None = None
    for cells in _csv_rows(path, progress):
        if _are_headings(cells):
            report = StatsReport(cells)
            if report.kind is not None:
                yield report, []
        elif report is not None and report.is_row(cells):
            yield report, cells


def _are_headings(cells: Sequence[str]) -> bool:
    """Return whether a line begins a report: it has several cells, and no cell is a number or empty."""
    return len(cells) >= _MIN_HEADINGS and all(cell.strip() and parse_cell(cell) is None for cell in cells)


def _csv_rows(path: Path, progress: Callable[[float], object]) -> Iterator[list[str]]:
    """Yield each line parsed by itself, so that no quote of nsys' messages swallows others."""
    for line in lines_of(path, progress):
        try:
            yield next(csv.reader([line.rstrip("\r\n")]), [])
        except csv.Error:
            continue


class Format(NamedTuple):
    """One kind of file. ``tool`` is that of ``tui-probe import TOOL``."""

    tool: str
    name: str
    files: str
    versions: str
    made_with: str


NCU_REPORT: Final = Format(
    "ncu", "report, with `pip install 'tui-probe[ncu]'`", "`.ncu-rep`", "all versions that ncu-report 2026.2 can read",
    "ncu -o FILE --set full --import-source yes COMMAND",
)  # fmt: skip
NCU_DETAILS: Final = Format(
    "ncu", "details page, `--metrics`", "`.csv`", "2019 to 2026",
    "ncu --csv --log-file FILE.csv --metrics dram__bytes.sum COMMAND",
)  # fmt: skip
NCU_RAW: Final = Format(
    "ncu", "raw page", "`.csv`", "2019 to 2026", "ncu --import FILE.ncu-rep --page raw --csv > FILE.csv"
)
NCU_SUMMARY: Final = Format(
    "ncu", "summary per kernel, without individual launches", "`.csv`", "2020 to 2026",
    "ncu --csv --print-summary per-kernel --log-file FILE.csv COMMAND",
)  # fmt: skip
NSYS_SQLITE: Final = Format("nsys", "export", "`.sqlite`", "2020 to 2026", "nsys export --type sqlite REPORT")
NSYS_STATS: Final = Format(
    "nsys", f"reports of nsys stats: {', '.join(kind.name for kind in REPORT_KINDS)}, or their older names", "`.csv`",
    "2020 to 2026", "nsys stats --format csv --report cuda_gpu_trace,nvtx_gpu_proj_trace --output . REPORT",
)  # fmt: skip
PYTORCH: Final = Format(
    "chrome",
    "trace of PyTorch's profiler",
    "`.json`, `.json.gz`",
    "1.8 to 2.11",
    'prof.export_chrome_trace("FILE.json.gz")',
)
JAX: Final = Format(
    "chrome", "trace of JAX", "`.trace.json.gz`", "0.4 to 0.11",
    "jax.profiler.start_trace(DIR, create_perfetto_trace=True)",
)  # fmt: skip
PROTON: Final = Format(
    "chrome", "trace of Triton's Proton", "`.chrome_trace`, `.json`", "3.4 to 3.9",
    'proton.start("FILE", data="trace")',
)  # fmt: skip
FORMATS: Final = (NCU_REPORT, NCU_DETAILS, NCU_RAW, NCU_SUMMARY, NSYS_SQLITE, NSYS_STATS, PYTORCH, JAX, PROTON)


def markdown_table() -> str:
    """All formats, for the help."""
    rows = [
        f"| `{format_.tool}` | {format_.name} | {format_.files} | {format_.versions} | `{format_.made_with}` |"
        for format_ in FORMATS
    ]
    return "\n".join(["| Tool | File | Named | Versions | Made with |", "|---|---|---|---|---|", *rows])
