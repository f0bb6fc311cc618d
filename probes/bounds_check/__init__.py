"""Accesses of a launch to global memory that are not within an allocation of the program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.errors import TraceError
from tui_probe.probekit.finding import Finding, counted, place
from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, LineSpec
from tui_probe.probekit.metric import Metric, show_known
from tui_probe.probekit.probe import Probe, Question
from tui_probe.records.probed_sites import probed_sites, records_by_time
from tui_probe.trace.launch_shape import index_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tui_probe.probekit.finding import Evidence, Number
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.records.probed_sites import InstructionRecord
    from tui_probe.trace.launch_shape import Dim3
    from tui_probe.trace.results import Result
    from tui_probe.trace.source_lines import SourceLine

RECORD: Final = np.dtype(
    [(name, "<u8") for name in ("time", "address", "below", "limit", "above")]
    + [(name, "<u4") for name in ("clock", "line", "lane", "bytes")]
)
"""Record per access outside."""
FREED: Final = 1 << 31
"""Bit in the size of an access: the allocation at or below it was freed."""
NEAR: Final = 512
"""An access that begins within these bytes behind an allocation is meant for it, if no known one begins there."""
ILLEGAL_ADDRESS: Final = 700
"""The driver's number for an access that no memory is mapped for."""
NULL_PAGES: Final = 1 << 16
"""Addresses below are those of a null pointer with an index."""
_ADVICE: Final = {
    "null pointer": "check that the allocation succeeded, and that the program passes the allocated pointer to the"
    " kernel",
    "use after free": "free the memory after the last kernel that uses it",
    "out of bounds": "compare the index with the size before the access",
}
"""Fixes by fault."""


@dataclass(frozen=True, slots=True)
class OutsideAccess:
    """One access. ``below`` and ``limit`` are start and end of the allocation at or below it, ``above`` the next start.

    ``block`` and ``thread`` are indices as in CUDA, (x, y, z).
    """

    block: Dim3
    thread: Dim3
    address: int
    bytes: int
    below: int
    limit: int
    above: int
    is_freed: bool
    line: int
    opcode: str
    source: SourceLine | None

    @property
    def fault(self) -> str:
        """``null pointer``, ``use after free``, ``out of bounds``, or "" for unknown memory."""
        if self.address < NULL_PAGES:
            return "null pointer"
        if self.is_freed and self.address < self.limit:
            return "use after free"
        is_near = self.limit and self.address < self.limit + NEAR
        return "out of bounds" if is_near and not self.is_freed else ""

    @property
    def where(self) -> str:
        """The nearest allocation, in words."""
        size, distance = self.limit - self.below, self.address - self.limit
        allocation = f"{size} bytes at {self.below:#x}"
        if self.address < NULL_PAGES or not self.limit:
            return f"{self.address:#x}"
        allocation += ", which was freed" if self.is_freed else ""
        if distance < 0:
            return f"{self.address:#x}, byte {self.address - self.below} of {allocation}"
        if self.above - self.address < distance:
            return f"{self.address:#x}, {units.count(self.above - self.address)} bytes before {self.above:#x}"
        return f"{self.address:#x}, {units.count(distance)} bytes past {allocation}"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The accesses of one launch that were kept, in the order of time, of ``total``."""

    total: int
    accesses: tuple[OutsideAccess, ...]
    threads_missing: int = 0

    @property
    def faults(self) -> list[OutsideAccess]:
        """The accesses that are wrong; the others are to unknown memory."""
        return [access for access in self.accesses if access.fault]


def analyse(result: Result, folder: Path | None = None) -> Bounds:
    """The accesses of a launch; ``folder`` is its kernel's. TraceError if map 0 holds no records of bounds_check."""
    records, totals = records_by_time(result, RECORD, probed_sites(folder)), result.totals(0)
    if records is None or totals is None:
        raise TraceError(f"{result.path}: the records are not from bounds_check")
    return Bounds(totals[1], tuple(map(_outside_access, records)))


def _outside_access(record: InstructionRecord) -> OutsideAccess:
    size = int(record.fields["bytes"])
    return OutsideAccess(
        block=record.block,
        thread=record.thread,
        address=int(record.fields["address"]),
        bytes=size % FREED,
        below=int(record.fields["below"]),
        limit=int(record.fields["limit"]),
        above=int(record.fields["above"]),
        is_freed=size >= FREED,
        line=record.line,
        opcode=record.opcode,
        source=record.source,
    )


def _first_line(bounds: Bounds) -> int | None:
    return bounds.faults[0].line if bounds.faults else None


def _first_block(bounds: Bounds) -> int | None:
    return bounds.faults[0].block[0] if bounds.faults else None


def _first_thread(bounds: Bounds) -> int | None:
    return bounds.faults[0].thread[0] if bounds.faults else None


METRICS: Final = (
    Metric("total", "warp accesses outside", better="lower", ideal=lambda _: 0,
           standalone_title="warp accesses outside of known allocations"),
    Metric("first_line", "first fault at PTX line", place=True, over_launches="none", read=_first_line,
           is_shown=show_known),
    Metric("first_block_x", "first fault at blockIdx.x", place=True, over_launches="none", read=_first_block,
           is_shown=show_known),
    Metric("first_thread_x", "first fault at threadIdx.x", place=True, over_launches="none", read=_first_thread,
           is_shown=show_known),
)  # fmt: skip


_SIMULATOR_FINDINGS: Final = frozenset({"out_of_bounds", "use_after_free"})


def _illegal_access(probe_result: ProbeResult, bounds: Bounds) -> OutsideAccess | None:
    """Return the access at which the GPU ended the context: the last one of the last launch to unknown memory."""
    failure = probe_result.kernel.trace.state.context_failed
    unknown_accesses = [access for access in bounds.accesses if not access.fault]
    is_last = (
        probe_result.launch is not None and probe_result.launch.number == probe_result.kernel.trace.launches[-1].number
    )
    return (
        unknown_accesses[-1] if failure and failure.error == ILLEGAL_ADDRESS and is_last and unknown_accesses else None
    )


def findings(probe_result: ProbeResult, bounds: Bounds) -> Iterator[Finding]:
    """The access that ended the context, the first fault of each line, then the first access to unknown memory."""
    illegal_access = _illegal_access(probe_result, bounds)
    if illegal_access is not None:
        text = f"{_access_text(illegal_access)}; then the GPU ended the kernel with the error “illegal address”"
        yield Finding("illegal", "illegal address", text, "lines", illegal_access.line, True, brief="illegal address",
                      values=_access_values(illegal_access), wrong_result=True,
                      replaced_by=_SIMULATOR_FINDINGS)  # fmt: skip
    by_line = {access.line: access for access in reversed(bounds.faults)}
    for access in sorted(by_line.values(), key=bounds.faults.index):
        values = {**_access_values(access), "accesses": counted(bounds.total, ideal=0)}
        yield Finding("fault", access.fault, _access_text(access), "lines", access.line, True, values=values,
                      brief=access.fault, advice=_ADVICE[access.fault], wrong_result=True,
                      replaced_by=_SIMULATOR_FINDINGS)  # fmt: skip
    unknown_access = next((access for access in bounds.accesses if not access.fault), None)
    if unknown_access is not None and illegal_access is None:
        text = f"access outside of all known allocations, first at {place(unknown_access.line, unknown_access.source)}"
        yield Finding("unknown", "unknown memory", f"{text}: {unknown_access.where}", "lines", unknown_access.line,
                      replaced_by=_SIMULATOR_FINDINGS)  # fmt: skip
    if not bounds.total:
        yield Finding("none", "bounds", "each access is within an allocation", "lines", replaced_by=_SIMULATOR_FINDINGS)


def _access_values(access: OutsideAccess) -> dict[str, Number | Evidence]:
    return {
        "address": counted(access.address),
        "bytes": counted(access.bytes, "B"),
        "access": access.opcode or None,
        "fault_block": f"({index_text(access.block)})",
        "fault_thread": f"({index_text(access.thread)})",
    }


def _access_text(access: OutsideAccess) -> str:
    return (
        f"{access.opcode or 'access'} at {place(access.line, access.source)} by block ({index_text(access.block)})"
        f" thread ({index_text(access.thread)}): {access.bytes} bytes at {access.where}"
    )


def _line_rows(probe_result: ProbeResult, bounds: Bounds) -> LineRows:
    del probe_result
    rows = [
        LineRow(
            access.line,
            access.source,
            {
                "fault": access.fault or "unknown memory",
                "block": index_text(access.block),
                "thread": index_text(access.thread),
                "address": access.where,
            },
        )
        for access in bounds.accesses
    ]
    return LineRows(
        rows,
        [
            f"{units.counted(bounds.total, 'warp access')} outside of allocations; the table lists the first such"
            " access of each warp"
        ],
    )


LINES: Final = LineSpec(
    (LineMeasure("fault", "first"), LineMeasure("block"), LineMeasure("thread"), LineMeasure("address")),
    "fault",
    _line_rows,
)
PROBES: Final = (
    Probe(
        name="bounds_check",
        analyse=lambda probe_result: analyse(probe_result.result, probe_result.kernel.folder),
        metrics=METRICS,
        question=Question(
            "out of bounds", "which access is outside of its allocation?", 36, r"\b(ld|st)\b", of_program=True
        ),
        findings=findings,
        fault_in_any_launch=True,
        lines=LINES,
    ),
)
