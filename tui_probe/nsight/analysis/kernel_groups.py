"""Launches grouped by process and shape; kernels, source lines and instructions matched between two tools."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from tui_probe.nsight.analysis.launch_means import SourceCounts
    from tui_probe.nsight.importers.ncu_table import Extent, NcuTable

Item = TypeVar("Item")
_OPEN: Final = {"<": 1, "(": 1, "[": 1, "{": 1, ">": -1, ")": -1, "]": -1, "}": -1}
_KINDS: Final = {
    "ld": "load", "ldu": "load", "LD": "load", "LDG": "load",
    "st": "store", "ST": "store", "STG": "store",
    "atom": "atomic", "red": "atomic", "ATOM": "atomic", "ATOMG": "atomic", "RED": "atomic", "REDG": "atomic",
    "cp": "copy", "LDGSTS": "copy",
}  # fmt: skip
"""Accesses by the first word of their opcode in PTX or SASS."""


class Shape(NamedTuple):
    """A kernel with one grid and block: one name may stand for several configurations."""

    kernel: str
    grid: Extent | None
    block: Extent | None


@dataclass(frozen=True, slots=True)
class Session:
    """The launches of one process, by position in the table and in order; ``codes`` numbers the shape of each."""

    file: int
    process: int | None
    launches: Sequence[int]
    codes: Sequence[int]
    shapes: Sequence[Shape]

    def of_shape(self, code: int) -> list[int]:
        """Launches of one shape."""
        return [launch for launch, other in zip(self.launches, self.codes, strict=True) if other == code]


def shape_of(table: NcuTable, launch: int) -> Shape:
    row = table.launches[launch]
    return Shape(row.kernel, row.grid, row.block)


def sessions_of(table: NcuTable) -> list[Session]:
    """Return every process of every file; summaries have no launches and so are in none."""
    sessions = []
    for launches in table.sessions():
        codes: dict[Shape, int] = {}
        numbers = [codes.setdefault(shape_of(table, launch), len(codes)) for launch in launches]
        first = table.launches[launches[0]]
        sessions.append(Session(first.file, first.process, launches, numbers, list(codes)))
    return sessions


def function_name(name: str) -> str:
    """``void at::f<4>(int)`` -> ``at::f``: what is outside of all brackets, without the return type."""
    depth, outside = 0, []
    for character in re.sub(r"\(anonymous namespace\)|<unnamed>", "_", name):
        step = _OPEN.get(character, 0)
        depth = max(depth + step, 0)
        if not depth and not step:
            outside.append(character)
    parts = "".join(outside).removesuffix(" const").split()
    return parts[-1] if parts else name


def match_kernels(
    first: Sequence[Item], second: Sequence[Item], shape: Callable[[Item], Shape]
) -> list[tuple[Item | None, Item | None]]:
    """Return pairs of the same kernel with the same grid and block; None where the other list lacks it.

    ncu writes ``f<(int)4, float>(float *, T1)`` where the C++ runtime writes ``void f<4, float>(float*, int)``. Two
    names are the same if they are equal without spaces, or if the function is the same and nothing else in the lists
    is like it.
    """
    left = list(second)
    pairs: list[tuple[Item | None, Item | None]] = []
    for item in first:
        partner = _partner(shape(item), first, left, shape)
        if partner is not None:
            left.remove(partner)
        pairs.append((item, partner))
    return pairs + [(None, item) for item in left]


def _partner(wanted: Shape, own: Sequence[Item], others: Sequence[Item], shape: Callable[[Item], Shape]) -> Item | None:
    for key in (_exact, _by_function):
        like = [item for item in others if key(shape(item)) == key(wanted)]
        is_unique = key is _exact or sum(key(shape(item)) == key(wanted) for item in own) == 1
        if len(like) == 1 and is_unique:
            return like[0]
    return None


def _exact(shape: Shape) -> object:
    return re.sub(r"\s", "", shape.kernel), shape.grid, shape.block


def _by_function(shape: Shape) -> object:
    return function_name(shape.kernel), shape.grid, shape.block


def search_names(names: Iterable[str], text: str) -> frozenset[str]:
    """The names that are the text or continue with no letter, digit or underscore after it; without one those with it
    anywhere.

    So “Step 40” means “Step 40 to 50” and not “Step 400”. Upper and lower case are the same.
    """
    distinct = frozenset(names)
    pattern = re.compile(re.escape(text) + r"(?!\w)", re.IGNORECASE)
    matches = frozenset(name for name in distinct if pattern.match(name))
    return matches or frozenset(name for name in distinct if text.lower() in name.lower())


class CountedLine(NamedTuple):
    """A line of a kernel; ``file`` is the name without directories."""

    kernel: str
    file: str
    line: int | None


class ProbedCounts(NamedTuple):
    """Counts of a probe in one launch."""

    requests: float | None
    sectors: float | None

    def __add__(self, other: object) -> ProbedCounts:
        """Add the counts; a missing count is left out."""
        if not isinstance(other, ProbedCounts):
            return NotImplemented
        pairs = zip(self, other, strict=True)
        return ProbedCounts(*(b if a is None else a if b is None else a + b for a, b in pairs))


class ProbedAccess(NamedTuple):
    """An instruction that a probe counted; ``offset`` is that in SASS, None of PTX."""

    place: CountedLine
    kind: str | None
    offset: int | None
    counts: ProbedCounts


def access_kind(instruction: str) -> str | None:
    """``@!P0 LDG.E R2, [R4]`` -> ``load``; None of an instruction that accesses no global memory."""
    tokens = instruction.split()
    opcode = next((word for word in tokens if not word.startswith("@")), "")
    return _KINDS.get(opcode.partition(".")[0])


def probed_lines(kernels: Iterable[Sequence[ProbedAccess]]) -> dict[CountedLine, ProbedCounts]:
    """Counts by line; of several kernels the first that has a line counts. Accesses of a line add up."""
    counts: dict[CountedLine, ProbedCounts] = {}
    for accesses in kernels:
        sums: dict[CountedLine, ProbedCounts] = {}
        for access in accesses:
            if access.place.line is not None:
                sums[access.place] = sums.get(access.place, ProbedCounts(None, None)) + access.counts
        counts = {**sums, **counts}
    return counts


def counts_of_lines(
    lines: Sequence[SourceCounts], kernels: Sequence[Sequence[ProbedAccess]]
) -> list[ProbedCounts | None]:
    """Return, per line, the counts of the same line of the same kernel."""
    probed = probed_lines(kernels)
    trace_names = _names_in_traces(lines, kernels)
    return [probed.get(_place(counts, trace_names)) for counts in lines]


def counts_of_instructions(
    instructions: Sequence[SourceCounts], kernels: Sequence[Sequence[ProbedAccess]]
) -> list[ProbedCounts | None]:
    """Return, per SASS instruction, the counts of the same access: by its offset if the probe was in SASS, else the
    only access of its kind in its line, both in SASS and in PTX.
    """
    trace_names = _names_in_traces(instructions, kernels)
    by_offset: dict[Hashable, ProbedCounts] = {}
    by_line: dict[Hashable, ProbedCounts] = {}
    for accesses in kernels:
        of_line = Counter((access.place, access.kind) for access in accesses)
        for access in accesses:
            if access.offset is not None:
                by_offset.setdefault((access.place.kernel, access.offset, access.kind), access.counts)
            elif access.place.line is not None and of_line[access.place, access.kind] == 1:
                by_line.setdefault((access.place, access.kind), access.counts)
    places = [(_place(counts, trace_names), access_kind(counts.text)) for counts in instructions]
    in_line = Counter(
        (counts.shape, place) for counts, place in zip(instructions, places, strict=True) if counts.requests is not None
    )
    matches = []
    for counts, (place, kind) in zip(instructions, places, strict=True):
        match = by_offset.get((place.kernel, counts.offset, kind))
        is_unique = in_line[counts.shape, (place, kind)] == 1 and counts.requests is not None
        matches.append(match if match is not None or not is_unique else by_line.get((place, kind)))
    return [None if kind is None else match for match, (_, kind) in zip(matches, places, strict=True)]


def _place(counts: SourceCounts, trace_names: Mapping[str, str]) -> CountedLine:
    return CountedLine(trace_names[counts.shape.kernel], PurePath(counts.file or "").name, counts.line)


def _names_in_traces(rows: Iterable[SourceCounts], kernels: Iterable[Sequence[ProbedAccess]]) -> dict[str, str]:
    """Map each kernel of a report to that of the traces; tools write names of kernels differently."""
    of_report = {counts.shape.kernel for counts in rows}
    of_traces = {accesses[0].place.kernel for accesses in kernels}
    pairs = match_kernels(sorted(of_report), sorted(of_traces), lambda kernel: Shape(kernel, None, None))
    return {kernel: trace_name or "" for kernel, trace_name in pairs if kernel is not None}
