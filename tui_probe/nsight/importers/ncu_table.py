"""Launches, metrics and values of Nsight Compute as columns; its numbers and units in base units."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

_TIMES: Final = {
    "nsecond": 1.0, "ns": 1.0, "usecond": 1e3, "us": 1e3, "µs": 1e3, "μs": 1e3, "msecond": 1e6, "ms": 1e6,
    "second": 1e9, "s": 1e9, "sec": 1e9, "minute": 60e9, "min": 60e9,
}  # fmt: skip
"""Nanoseconds of each unit of time."""
_PREFIXES: Final = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
"""Powers of 1000, as ncu prints them with ``--print-units auto``."""
_COUNT_UNITS: Final = frozenset({"byte", "hz", "inst", "sector", "cycle", "warp", "thread", "block", "request", "flop"})
_SPELLINGS: Final = {"bytes": "byte", "b": "byte", "cycles": "cycle", "sectors": "sector", "insts": "inst"}
_NUMBER: Final = re.compile(r"[+-]?\d[\d.,'’ \u00a0\u202f_]*(?:[eE][+-]?\d+)?")
_BLANK_SEPARATORS: Final = str.maketrans("", "", "'’ \u00a0\u202f_")
_INSTANCES: Final = re.compile(r"(\S+) [({].*[)}]")
ABSENT: Final = frozenset({"", "n/a", "no data", "nan", "-nan", "(!) nan", "(!) n/a", "inf", "-inf"})
"""Texts of values that were not measured."""
_MAX_NUMBER: Final = 1e30
"""Limit beyond any counter; sums and products of numbers up to here are finite."""
Extent: TypeAlias = tuple[int, int, int]


@lru_cache(maxsize=4096)
def base_unit(unit: str) -> tuple[str, float]:
    """Return the base unit, and the factor that turns a value into it: ``Kbyte`` -> (``byte``, 1000).

    Base units have one spelling: ``byte``, ``ns`` for times, ``hz`` and ``byte/s`` for rates, ``inst/cycle``. A unit
    that is not known stays as it is.
    """
    numerator, slash, denominator = unit.strip().partition("/")
    name, factor = _base_of_part(numerator)
    if not slash:
        return name, factor
    if denominator in _TIMES:
        rate = factor * 1e9 / _TIMES[denominator]
        return ("hz" if name == "cycle" else f"{name}/s"), rate
    divisor, scale = _base_of_part(denominator)
    return f"{name}/{divisor}", factor / scale


def _base_of_part(text: str) -> tuple[str, float]:
    if text in _TIMES:
        return "ns", _TIMES[text]
    spelling = _SPELLINGS.get(text.lower(), text.lower())
    if spelling in _COUNT_UNITS:
        return spelling, 1.0
    without_prefix = _SPELLINGS.get(spelling[1:], spelling[1:])
    if without_prefix in _COUNT_UNITS and spelling[0] in _PREFIXES:
        return without_prefix, _PREFIXES[spelling[0]]
    return text, 1.0


def decimal_point(texts: Iterable[str]) -> str:
    """The decimal sign of a file, ``.`` or ``,``, told by the values in it.

    ``1,234,567`` and ``1.50`` speak for the point, ``1.234.567`` and ``1,50`` for the comma. ``1,024`` speaks for the
    point too, but only where nothing else speaks: ncu prints two decimals, so three digits are a group of thousands.
    """
    votes = Counter(map(_decimal_point_in, texts))
    if votes["."] == votes[","]:
        return "," if votes["weak ,"] > votes["weak ."] else "."
    return "," if votes[","] > votes["."] else "."


def _decimal_point_in(text: str) -> str:
    """The decimal sign that one value implies, empty if it implies none."""
    if not _NUMBER.fullmatch(text):
        return ""
    comma, point = text.rfind(","), text.rfind(".")
    if comma >= 0 and point >= 0:
        return "." if point > comma else ","
    sign = "," if comma >= 0 else "." if point >= 0 else ""
    if not sign:
        return ""
    other_sign = "." if sign == "," else ","
    if text.count(sign) > 1:
        return other_sign
    integer, fraction = text.lstrip("+-").split(sign)
    is_group = len(fraction) == 3 and fraction.isdigit() and 1 <= len(integer) <= 3 and integer.lstrip("0")
    return f"weak {other_sign}" if is_group else sign


def parse_number(text: str, point: str = ".") -> float | None:
    """The value of a cell; None if it holds no number, or one that was never measured.

    ``4 (1; 3)``, a value with its instances, is 4.
    """
    instances = _INSTANCES.fullmatch(text)
    if instances is not None:
        text = instances[1]
    if not _NUMBER.fullmatch(text):
        return None
    digits = text.translate(_BLANK_SEPARATORS)
    digits = digits.replace(",", "") if point == "." else digits.replace(".", "").replace(",", ".")
    try:
        value = float(digits)
    except ValueError:
        return None
    return value if abs(value) <= _MAX_NUMBER else None


class NcuLaunch(NamedTuple):
    """One profiled launch, or in a summary (``invocations`` given) all launches of one kernel with one shape.

    ``number`` is ncu's ID, from 0 in a session, None in a summary. Grid and block are None in older files.
    """

    file: int
    session: int
    number: int | None
    process: int | None
    process_name: str
    kernel: str
    grid: Extent | None
    block: Extent | None
    stream: str
    device: str
    invocations: int | None = None


class Metric(NamedTuple):
    """A measured quantity. The same name in two sections is two metrics; ``unit`` is a base unit."""

    section: str
    name: str
    unit: str


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction of a launch, by position in the table; ``offset`` is from the first one that was counted.

    Counts are None where they were not collected; ``stalls`` are samples by reason.
    """

    launch: int
    offset: int
    text: str
    file: str | None
    line: int | None
    executed: float | None
    sectors: float | None
    ideal: float | None
    stalls: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NcuFile:
    """A file that was read, and what is worth knowing of it."""

    name: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NcuTable:
    """Values of launches.

    ``launch`` (i4) and ``metric`` (i4) are positions in ``launches`` and ``metrics``; ``value`` (f8) is NaN where
    nothing was measured or the value is a word, which is then in ``texts`` by row. All have one entry per value.
    """

    files: tuple[NcuFile, ...]
    launches: Sequence[NcuLaunch]
    metrics: Sequence[Metric]
    launch: NDArray[np.int32]
    metric: NDArray[np.int32]
    value: NDArray[np.float64]
    texts: Mapping[int, str] = field(default_factory=dict)
    instructions: Sequence[Instruction] = ()
    """Counters of single instructions, which only reports have."""

    def __len__(self) -> int:
        return len(self.value)

    def positions(self, name: str, section: str | None = None, unit: str | None = None) -> list[int]:
        """The metrics of that name, in a section or of a unit if given."""
        return [
            position
            for position, metric in enumerate(self.metrics)
            if metric.name == name and section in (None, metric.section) and unit in (None, metric.unit)
        ]

    def column(self, name: str, section: str | None = None, unit: str | None = None) -> NDArray[np.float64]:
        """Values of a metric by launch, NaN where it was not measured; the first where a launch has several."""
        values = np.full(len(self.launches), np.nan)
        for position in reversed(self.positions(name, section, unit)):
            rows = np.flatnonzero((self.metric == position) & ~np.isnan(self.value))[::-1]
            values[self.launch[rows]] = self.value[rows]
        return values

    def text(self, row: int) -> str | None:
        """The word in a row, if its value is one."""
        return self.texts.get(row)

    @property
    def is_summary(self) -> bool:
        """True if any of it is a summary, which has no launches and so no warm-up to leave out."""
        return any(launch.invocations is not None for launch in self.launches)

    def sessions(self) -> Iterator[list[int]]:
        """Launches of each process of each file, in the order of launching; summaries have none."""
        groups: dict[tuple[int, int, int | None], list[int]] = {}
        for position, launch in enumerate(self.launches):
            if launch.invocations is None:
                groups.setdefault((launch.file, launch.session, launch.process), []).append(position)
        yield from groups.values()


def join_tables(tables: Sequence[NcuTable]) -> NcuTable:
    """Several tables as one."""
    if len(tables) == 1:
        return tables[0]
    files: list[NcuFile] = []
    launches: list[NcuLaunch] = []
    metrics: dict[Metric, int] = {}
    texts: dict[int, str] = {}
    instructions: list[Instruction] = []
    columns: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]] = []
    rows = 0
    for table in tables:
        codes = np.array([metrics.setdefault(metric, len(metrics)) for metric in table.metrics], dtype=np.int32)
        instructions += [
            replace(instruction, launch=instruction.launch + len(launches)) for instruction in table.instructions
        ]
        columns.append((table.launch + np.int32(len(launches)), codes[table.metric], table.value))
        launches += [launch._replace(file=launch.file + len(files)) for launch in table.launches]
        texts |= {row + rows: word for row, word in table.texts.items()}
        files += table.files
        rows += len(table)
    launch, metric, value = (np.concatenate(part) for part in zip(*columns, strict=True))
    return NcuTable(tuple(files), launches, list(metrics), launch, metric, value, texts, instructions)
