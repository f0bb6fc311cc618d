"""What single instructions counted: the sums of a launch for each line of ``pruned.ptx`` that a probe is at.

They were added to memory as the instructions ran, so nothing is missing where a thread did not exit; what was
counted then is of what ran until then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from tui_probe.analysis.known_sites import sites_of
from tui_probe.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.trace.results import Result
    from tui_probe.trace.source_lines import SourceLine


class Counted(Protocol):
    """The analysis of one result of a counting probe."""

    @property
    def threads_missing(self) -> int:
        """Threads of the measured blocks that did not add what they counted."""


Whole = TypeVar("Whole", bound=Counted)


@dataclass(frozen=True, slots=True)
class LineSums:
    """One line: its ``opcode`` with modifiers, None if nothing tells, and the ``sums`` by field."""

    line: int
    opcode: str | None
    source: SourceLine | None
    sums: dict[str, int]

    def total(self, *fields: str) -> int:
        """The sum of several fields."""
        return sum(self.sums[field] for field in fields)


@dataclass(frozen=True, slots=True)
class CountsByLine(Generic[Whole]):
    """The analysis of a whole launch, as of the probe without lines, and the lines that it is the sum of.

    ``worst`` is the line that stands out, and by which value; None if no line was executed.
    """

    whole: Whole
    lines: tuple[LineSums, ...]
    worst: tuple[LineSums, float] | None

    @property
    def threads_missing(self) -> int:
        """Threads of the measured blocks that did not add what they counted."""
        return self.whole.threads_missing


def line_sums(
    result: Result, record: np.dtype[Any], probe: str, sites: Sequence[int], folder: Path | None
) -> tuple[LineSums, ...]:
    """The sums of map 0 by line, in the order of lines. ``sites`` are the lines of its records, from ``kernel.info``.

    ``folder`` is that of the kernel in the trace, for opcodes and source. TraceError if the records are not of
    ``probe``, or not as many as ``sites``.
    """
    records = site_records(result, record, probe, sites)
    names = record.names or ()
    sums: dict[int, dict[str, int]] = {}
    for line, values in zip(sites, records.tolist(), strict=True):
        before = sums.get(line, dict.fromkeys(names, 0))
        sums[line] = {name: before[name] + value for name, value in zip(names, values, strict=True)}
    known = sites_of(folder)
    opcodes = {one.line: one.opcode for one in reversed(known.instructions())}  # of several on one line the first
    return tuple(LineSums(line, opcodes.get(line), known.ptx_line(line), sums[line]) for line in sorted(sums))


def site_records(result: Result, record: np.dtype[Any], probe: str, sites: Sequence[int]) -> NDArray[Any]:
    """The records of map 0, one for each of ``sites``. Raises TraceError as ``line_sums``."""
    records = result.sites(0, record) if result.maps else None
    if records is None:
        raise TraceError(f"{result.path}: its records are not of {probe}, which keeps one per site")
    if len(records) != len(sites):
        raise TraceError(f"{result.path}: records of {len(records)} sites, kernel.info names {len(sites)}")
    return records


def record_of(*fields: str) -> np.dtype[Any]:
    """The record of a map of sites: sums of 64 bits."""
    return np.dtype([(field, "<u8") for field in fields])


def totals(lines: Iterable[LineSums], record: np.dtype[Any]) -> dict[str, int]:
    """The sums of all lines, by field."""
    rows = list(lines)
    return {name: sum(row.sums[name] for row in rows) for name in record.names or ()}


def worst_of(
    lines: Iterable[LineSums], value: Callable[[LineSums], float | None], *, lowest: bool = False
) -> tuple[LineSums, float] | None:
    """The line with the highest value, or the lowest; the first of several. Lines without a value are left out."""
    known = [(line, found) for line in lines if (found := value(line)) is not None]
    return (min if lowest else max)(known, key=lambda pair: pair[1], default=None)
