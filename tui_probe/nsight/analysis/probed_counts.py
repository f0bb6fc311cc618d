"""Counts of a probe matched with the source lines and SASS instructions of a report of Nsight Compute."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.nsight.analysis.kernel_groups import Shape, match_kernels

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from tui_probe.nsight.analysis.launch_means import SourceCounts

_KINDS: Final = {
    "ld": "load", "ldu": "load", "LD": "load", "LDG": "load",
    "st": "store", "ST": "store", "STG": "store",
    "atom": "atomic", "red": "atomic", "ATOM": "atomic", "ATOMG": "atomic", "RED": "atomic", "REDG": "atomic",
    "cp": "copy", "LDGSTS": "copy",
}  # fmt: skip
"""Accesses by the first word of their opcode in PTX or SASS."""


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
    counts_by_line = probed_lines(kernels)
    trace_names = _trace_names(lines, kernels)
    return [counts_by_line.get(_counted_line(counts, trace_names)) for counts in lines]


def counts_of_instructions(
    instructions: Sequence[SourceCounts], kernels: Sequence[Sequence[ProbedAccess]]
) -> list[ProbedCounts | None]:
    """Return, per SASS instruction, the counts of the same access: by its offset if the probe was in SASS, else the
    only access of its kind in its line, both in SASS and in PTX.
    """
    trace_names = _trace_names(instructions, kernels)
    by_offset: dict[Hashable, ProbedCounts] = {}
    by_line: dict[Hashable, ProbedCounts] = {}
    for accesses in kernels:
        accesses_per_line = Counter((access.place, access.kind) for access in accesses)
        for access in accesses:
            if access.offset is not None:
                by_offset.setdefault((access.place.kernel, access.offset, access.kind), access.counts)
            elif access.place.line is not None and accesses_per_line[access.place, access.kind] == 1:
                by_line.setdefault((access.place, access.kind), access.counts)
    places = [(_counted_line(counts, trace_names), access_kind(counts.text)) for counts in instructions]
    requests_per_line = Counter(
        (counts.shape, place) for counts, place in zip(instructions, places, strict=True) if counts.requests is not None
    )
    matches = []
    for counts, (place, kind) in zip(instructions, places, strict=True):
        match = by_offset.get((place.kernel, counts.offset, kind))
        is_unique = requests_per_line[counts.shape, (place, kind)] == 1 and counts.requests is not None
        matches.append(match if match is not None or not is_unique else by_line.get((place, kind)))
    return [None if kind is None else match for match, (_, kind) in zip(matches, places, strict=True)]


def _counted_line(counts: SourceCounts, trace_names: Mapping[str, str]) -> CountedLine:
    return CountedLine(trace_names[counts.shape.kernel], PurePath(counts.file or "").name, counts.line)


def _trace_names(rows: Iterable[SourceCounts], kernels: Iterable[Sequence[ProbedAccess]]) -> dict[str, str]:
    """Map each kernel of a report to that of the traces; tools write names of kernels differently."""
    report_kernels = {counts.shape.kernel for counts in rows}
    trace_kernels = {accesses[0].place.kernel for accesses in kernels}
    pairs = match_kernels(sorted(report_kernels), sorted(trace_kernels), lambda kernel: Shape(kernel, None, None))
    return {kernel: trace_name or "" for kernel, trace_name in pairs if kernel is not None}
