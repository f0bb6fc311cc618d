"""Tables of Nsight Compute by their headings, and their rows as columns of codes.

    details   ``ID`` … ``Section Name, Metric Name, Metric Unit, Metric Value``: one row per metric; ``--metrics`` too
    raw       ``ID`` … and one column per metric; the first row holds the units; one row per launch
    summary   ``Invocations … Metric Name, Metric Unit, Minimum, Maximum, Average``: no launches

Cells are found by their heading, never by position: versions and NVTX add and leave out columns, and rows end early.
"""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import numpy as np

from tui_probe.nsight.importers.ncu_table import ABSENT, Metric, NcuLaunch, base_unit, decimal_point, parse_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.nsight.importers.ncu_table import Extent

_EXTENT: Final = re.compile(r"\D*(\d{1,10})\D+(\d{1,10})\D+(\d{1,10})\D*")
_MAX_DIGITS: Final = 18
"""Digits of a number that fits a signed integer of 64 bits."""
_Block: TypeAlias = "tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]"
"""Launches, metrics and texts, one entry per value."""
IDENTITY: Final = frozenset({
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream", "Block Size",
    "Grid Size", "Device", "Device Name", "CC", "Invocations",
})  # fmt: skip
"""Headings of cells that say which launch a row is of."""
_NVTX: Final = ("Domain:Push/Pop_Range", "Domain:Start/Stop_Range")
RAW_SECTION: Final = "raw"
NO_METRICS: Final = np.empty(0, dtype=np.int32)


class Codes(dict[str, int]):
    """Numbers texts in the order in which they are first asked for."""

    def __missing__(self, text: str) -> int:
        self[text] = code = len(self)
        return code


class ValueRows:
    """The values of one file as they are read."""

    def __init__(self) -> None:
        self.launches: list[NcuLaunch] = []
        self.texts = Codes()
        self._metrics: dict[tuple[str, str, str], int] = {}
        self._launch = array("i")
        self._metric = array("i")
        self._text = array("i")
        self._blocks: list[_Block] = []

    def metric(self, section: str, name: str, unit: str) -> int:
        """The code of a metric; ``unit`` as it is printed."""
        return self._metrics.setdefault((section, name, unit), len(self._metrics))

    def add(self, launch: int, metric: int, text: str) -> None:
        """Add a value."""
        self._launch.append(launch)
        self._metric.append(metric)
        self._text.append(self.texts[text])

    def extend(self, launch: int, metrics: NDArray[np.int32], texts: Sequence[str]) -> None:
        """All values of one launch: as many metrics as texts."""
        codes = np.fromiter(map(self.texts.__getitem__, texts), dtype=np.int32, count=len(texts))
        self._close_block()
        self._blocks.append((np.full(len(texts), launch, dtype=np.int32), metrics, codes))

    def _close_block(self) -> None:
        """Make a block of the values that were added one by one."""
        if self._launch:
            launch, metric, text = (np.array(part, dtype=np.int32) for part in (self._launch, self._metric, self._text))
            self._blocks.append((launch, metric, text))
            del self._launch[:], self._metric[:], self._text[:]

    def metrics(self) -> tuple[list[Metric], NDArray[np.int32], NDArray[np.float64]]:
        """The metrics in base units; for each code of tui-probe the position among them, and its factor."""
        numbers: dict[Metric, int] = {}
        positions, factors = [], []
        for section, name, unit in self._metrics:
            base, factor = base_unit(unit)
            positions.append(numbers.setdefault(Metric(section, name, base), len(numbers)))
            factors.append(factor)
        return list(numbers), np.array(positions, dtype=np.int32), np.array(factors)

    def columns(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], dict[int, str]]:
        """``launch``, code of the ``metric``, ``value`` as it is printed, and words by row."""
        self._close_block()
        no_codes = np.empty(0, dtype=np.int32)
        columns = zip(*self._blocks, strict=True) if self._blocks else ((no_codes,),) * 3
        launch, metric, codes = (np.concatenate(column) for column in columns)
        self._blocks.clear()
        texts = [text.strip() for text in self.texts]
        point = decimal_point(texts)
        numbers = [parse_number(text, point) for text in texts]
        values = np.array([np.nan if number is None else number for number in numbers], dtype=np.float64)
        is_word = [number is None and text.lower() not in ABSENT for number, text in zip(numbers, texts, strict=True)]
        rows = np.flatnonzero(np.array(is_word, dtype=np.bool_)[codes]) if len(codes) else codes
        return (
            launch,
            metric,
            values[codes] if len(codes) else values[:0],
            {int(row): texts[codes[row]] for row in rows},
        )


def launch_of(cells: Mapping[str, str], session: int) -> NcuLaunch:
    """A launch from the cells that name it, by heading."""
    return NcuLaunch(
        file=0,
        session=session,
        number=parse_count(cells.get("ID", "")),
        process=parse_count(cells.get("Process ID", "")),
        process_name=cells.get("Process Name", ""),
        kernel=cells.get("Kernel Name", ""),
        grid=parse_extent(cells.get("Grid Size", "")),
        block=parse_extent(cells.get("Block Size", "")),
        stream=cells.get("Stream", ""),
        device=cells.get("Device", ""),
        invocations=parse_count(cells.get("Invocations", "")),
    )


def parse_count(text: str) -> int | None:
    """A count, which may have separators; None if it is none."""
    digits = re.sub(r"[,. '’\u00a0\u202f]", "", text)
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS else None


def parse_extent(text: str) -> Extent | None:
    """``(256, 1, 1)`` -> (256, 1, 1)."""
    match = _EXTENT.fullmatch(text)
    sides = [parse_count(side) for side in match.groups()] if match is not None else [None]
    return None if None in sides else (sides[0] or 0, sides[1] or 0, sides[2] or 0)


class Layout(Protocol):
    """Reads the rows below one line of headings."""

    def read(self, cells: list[str], rows: ValueRows) -> bool:
        """Add a row; False if it is not a row of this table."""


def layout_of(headings: list[str], session: int) -> Layout | None:
    """The table that these headings begin, None if they are none."""
    names = {name: position for position, name in reversed(list(enumerate(headings)))}
    if "Kernel Name" not in names:
        return None
    if {"Metric Name", "ID", "Metric Value"} <= names.keys():
        return DetailsLayout(names, session)
    if {"Metric Name", "Invocations", "Average"} <= names.keys():
        return SummaryLayout(names, session)
    return RawLayout(headings, session) if "ID" in names else None


class _MetricCells:
    """Metrics by their cells; a section or a unit that the headings do not have is empty."""

    def __init__(self, names: dict[str, int]) -> None:
        self._name, self._section, self._unit = (
            names["Metric Name"],
            names.get("Section Name"),
            names.get("Metric Unit"),
        )
        self.last_cell = max(self._name, self._section or 0, self._unit or 0)

    def name(self, cells: list[str]) -> str:
        return cells[self._name]

    def code_of(self, cells: list[str], rows: ValueRows, suffix: str = "") -> int:
        section, unit = ("" if position is None else cells[position] for position in (self._section, self._unit))
        return rows.metric(section, cells[self._name] + suffix, unit)


class _LaunchCells:
    """Launches by the cells that name them."""

    def __init__(self, names: dict[str, int], session: int) -> None:
        self._identity = {name: position for name, position in names.items() if name in IDENTITY}
        self._session = session
        self._positions: dict[tuple[str, ...], int] = {}
        self._last_numbers: dict[int | None, int | None] = {}
        self.first_cell = names["ID"] if "ID" in names else names.get("Process ID", names["Kernel Name"])
        self._end = max(self._identity.values()) + 1

    def position_of(self, cells: list[str], rows: ValueRows) -> int:
        """The position of the launch that a row is of."""
        key = tuple(cells[: self._end])
        position = self._positions.get(key)
        if position is None:
            position = self._positions[key] = len(rows.launches)
            launch = self._launch(cells)
            rows.launches.append(launch)
            self._last_numbers[launch.process] = launch.number
        return position

    def is_continued_by(self, cells: list[str]) -> bool:
        """Return whether a row is of a launch after those before, of the same process; a new session restarts at 0."""
        launch = self._launch(cells)
        last = self._last_numbers.get(launch.process)
        return last is not None and launch.number is not None and 0 < launch.number >= last

    def _launch(self, cells: list[str]) -> NcuLaunch:
        """A row's launch; what the row ends before is empty."""
        identity = {name: cells[at] if at < len(cells) else "" for name, at in self._identity.items()}
        return launch_of(identity, self._session)


class DetailsLayout:
    """One row per metric, or a rule (which is left out: it repeats in words what the metrics say)."""

    def __init__(self, names: dict[str, int], session: int) -> None:
        self._launches = _LaunchCells(names, session)
        self._metrics = _MetricCells(names)
        self._value_cell, self._id_cell = names["Metric Value"], names["ID"]
        self._min_cells = max(self._metrics.last_cell, self._value_cell) + 1

    def is_continued_by(self, cells: list[str]) -> bool:
        """Return whether a row below the same headings, written once more, belongs to this table."""
        return (
            len(cells) >= self._min_cells and cells[self._id_cell].isdecimal() and self._launches.is_continued_by(cells)
        )

    def read(self, cells: list[str], rows: ValueRows) -> bool:
        if len(cells) < self._min_cells or not cells[self._id_cell].isdecimal():
            return False
        launch = self._launches.position_of(cells, rows)
        if self._metrics.name(cells):
            rows.add(launch, self._metrics.code_of(cells, rows), cells[self._value_cell])
        return True


class SummaryLayout:
    """One row per metric of all launches of a kernel with one shape: three values."""

    def __init__(self, names: dict[str, int], session: int) -> None:
        self._launches = _LaunchCells(names, session)
        self._metrics = _MetricCells(names)
        kinds = {"Average": "", "Minimum": " (minimum)", "Maximum": " (maximum)"}
        self._value_cells = [(names[kind], suffix) for kind, suffix in kinds.items() if kind in names]
        self._min_cells = max([self._metrics.last_cell, *(at for at, _ in self._value_cells)]) + 1

    def read(self, cells: list[str], rows: ValueRows) -> bool:
        if len(cells) < self._min_cells or not self._metrics.name(cells):
            return False
        launch = self._launches.position_of(cells, rows)
        for position, suffix in self._value_cells:
            rows.add(launch, self._metrics.code_of(cells, rows, suffix), cells[position])
        return True


class RawLayout:
    """One row per launch, below a row of units."""

    def __init__(self, headings: list[str], session: int) -> None:
        self._names = {name: position for position, name in reversed(list(enumerate(headings)))}
        self._launches = _LaunchCells(self._names, session)
        self._id_cell = self._names["ID"]
        begin = 1 + max(
            position
            for position, name in enumerate(headings)
            if name in IDENTITY or any(part in name for part in _NVTX)
        )
        self._first_metric = begin
        self._headings = headings[begin:]
        self._metrics = NO_METRICS

    def read(self, cells: list[str], rows: ValueRows) -> bool:
        if len(cells) < self._first_metric:
            return False
        values = cells[self._first_metric : self._first_metric + len(self._headings)]
        if not cells[self._id_cell]:
            self._name_metrics(values, rows)
            return True
        if not cells[self._id_cell].isdecimal():
            return False
        if not len(self._metrics):
            self._name_metrics([], rows)
        launch = self._launches.position_of(cells, rows)
        rows.extend(launch, self._metrics[: len(values)], values)
        return True

    def _name_metrics(self, units: list[str], rows: ValueRows) -> None:
        units = units + [""] * (len(self._headings) - len(units))
        codes = [rows.metric(RAW_SECTION, name, unit) for name, unit in zip(self._headings, units, strict=True)]
        self._metrics = np.array(codes, dtype=np.int32)
