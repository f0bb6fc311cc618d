"""What Nsight Compute measured: launches, metrics and values, as columns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

Extent: TypeAlias = tuple[int, int, int]


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
    """What was measured. The same name in two sections is two metrics; ``unit`` is a base unit."""

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
    nothing was measured or the value is a word, which is then in ``words`` by row. All have one entry per value.
    """

    files: tuple[NcuFile, ...]
    launches: Sequence[NcuLaunch]
    metrics: Sequence[Metric]
    launch: NDArray[np.int32]
    metric: NDArray[np.int32]
    value: NDArray[np.float64]
    words: Mapping[int, str] = field(default_factory=dict)
    instructions: Sequence[Instruction] = ()
    """Counters of single instructions, which reports alone have."""

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
        return self.words.get(row)

    @property
    def is_summary(self) -> bool:
        """Whether any of it is a summary, which has no launches and so no warm-up to leave out."""
        return any(launch.invocations is not None for launch in self.launches)

    def sessions(self) -> Iterator[list[int]]:
        """Launches of each process of each file, in the order of launching; summaries have none."""
        groups: dict[tuple[int, int, int | None], list[int]] = {}
        for position, launch in enumerate(self.launches):
            if launch.invocations is None:
                groups.setdefault((launch.file, launch.session, launch.process), []).append(position)
        yield from groups.values()


def joined(tables: Sequence[NcuTable]) -> NcuTable:
    """Several tables as one."""
    if len(tables) == 1:
        return tables[0]
    files: list[NcuFile] = []
    launches: list[NcuLaunch] = []
    metrics: dict[Metric, int] = {}
    words: dict[int, str] = {}
    instructions: list[Instruction] = []
    columns: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]] = []
    rows = 0
    for table in tables:
        codes = np.array([metrics.setdefault(metric, len(metrics)) for metric in table.metrics], dtype=np.int32)
        instructions += [replace(each, launch=each.launch + len(launches)) for each in table.instructions]
        columns.append((table.launch + np.int32(len(launches)), codes[table.metric], table.value))
        launches += [launch._replace(file=launch.file + len(files)) for launch in table.launches]
        words |= {row + rows: word for row, word in table.words.items()}
        files += table.files
        rows += len(table)
    launch, metric, value = (np.concatenate(part) for part in zip(*columns, strict=True))
    return NcuTable(tuple(files), launches, list(metrics), launch, metric, value, words, instructions)
