"""Counters of instructions, as means over the launches of a kernel: by instruction, and summed by line of source."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tui_probe.nsight.analysis.launch_groups import Shape, shape_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from tui_probe.nsight.importers.ncu_table import Instruction, NcuTable


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """Means per launch of the instructions of a line, or of one; None was not counted.

    ``requests`` are executions of instructions that access global memory: a warp instruction is one request.
    """

    shape: Shape
    file: str | None
    line: int | None
    offset: int
    text: str
    executed: float | None
    requests: float | None
    sectors: float | None
    ideal: float | None
    stalls: Mapping[str, float] = field(default_factory=dict)

    @property
    def samples(self) -> float:
        return sum(self.stalls.values())

    @property
    def reason(self) -> str | None:
        """Why warps waited there most often."""
        return max(self.stalls, key=lambda name: (self.stalls[name], name), default=None)


def by_instruction(table: NcuTable) -> list[SourceCounts]:
    """Every instruction of every kernel, in the order of the code."""
    return _summed(table, lambda each: (each.offset, each.text))


def by_line(table: NcuTable) -> list[SourceCounts]:
    """Every line of source; instructions without one are together."""
    return _summed(table, lambda each: (each.file, each.line))


def _summed(table: NcuTable, key: Callable[[Instruction], Hashable]) -> list[SourceCounts]:
    launches: defaultdict[Shape, set[int]] = defaultdict(set)
    groups: defaultdict[tuple[Shape, Hashable], list[Instruction]] = defaultdict(list)
    for each in table.instructions:
        shape = shape_of(table, each.launch)
        launches[shape].add(each.launch)
        groups[shape, key(each)].append(each)
    return [_counts(shape, own, len(launches[shape])) for (shape, _), own in groups.items()]


def _counts(shape: Shape, own: Sequence[Instruction], launches: int) -> SourceCounts:
    stalls: dict[str, float] = {}
    for each in own:
        for reason, samples in each.stalls.items():
            stalls[reason] = stalls.get(reason, 0.0) + samples / launches
    accesses = [each for each in own if each.sectors]
    return SourceCounts(
        shape,
        own[0].file,
        own[0].line,
        own[0].offset,
        own[0].text,
        _mean((each.executed for each in own), launches),
        _mean((each.executed for each in accesses), launches),
        _mean((each.sectors for each in own), launches),
        _mean((each.ideal for each in own), launches),
        stalls,
    )


def _mean(values: Iterable[float | None], launches: int) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / launches if known else None
