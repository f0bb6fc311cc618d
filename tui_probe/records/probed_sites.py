"""Instructions that a probe is attached to, by line of ``pruned.ptx``, and the records that name such a line.

The instructions are those of ``sites.json``, in older traces parsed from ``pruned.ptx``; there are none where that file
is missing or damaged. Records that name an instruction have the fields ``time`` (ns), ``clock`` (cycles), ``line`` and
``lane``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from tui_probe.errors import PtxError
from tui_probe.input_limits import PTX_TEXT
from tui_probe.ptx.control_flow import basic_blocks
from tui_probe.ptx.instruction_facts import facts_of
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import instructions_in
from tui_probe.ptx.value_types import ValueTypes
from tui_probe.trace.launch_shape import WARP_SIZE, index_in
from tui_probe.trace.plain_file import read_within
from tui_probe.trace.sites import SiteInstruction, read_sites
from tui_probe.trace.source_lines import SourceLines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tui_probe.ptx.instruction_facts import AccessKind
    from tui_probe.ptx.tree import Function, Instruction
    from tui_probe.trace.launch_shape import Dim3
    from tui_probe.trace.results import Result
    from tui_probe.trace.sites import ProbeSites, Site
    from tui_probe.trace.source_lines import SourceLine

_NOT_GLOBAL: Final = frozenset({"shared", "local", "param", "bulk", "async"})


class ProbedSites(Protocol):
    """Lines are those of ``pruned.ptx``, counted from 1. What is not known is None or left out."""

    def instructions(self) -> Sequence[SiteInstruction]:
        """Return the instructions in textual order, at least those that the probe was at."""

    def blocks(self, lines: Sequence[int]) -> Sequence[Sequence[SiteInstruction]]:
        """The basic blocks that a map has records for; ``lines`` are those of their first instructions, in order.

        Nothing if the blocks that are known are others.
        """

    def unchecked(self) -> Sequence[SiteInstruction]:
        """The stores whose values are of no known type, though they may store numbers, in the order of the text."""

    def ptx_line(self, line: int) -> SourceLine | None:
        """The source of an instruction that the probe was at."""

    def following(self, line: int) -> SourceLine | None:
        """The source of a block or loop that the probe was at: of the first line from its own on that has one."""


def probed_sites(folder: Path | None) -> ProbedSites:
    """Read the sites of a kernel's directory in a trace, none for None. Raises TraceError for a damaged
    ``sites.json``.
    """
    if folder is None:
        return _RecordedSites(())
    probes = read_sites(folder)
    return SitesFromPtx(folder) if probes is None else _RecordedSites(probes)


class _RecordedSites:
    """Sites as the engine wrote them to sites.json."""

    def __init__(self, probes: Iterable[ProbeSites]) -> None:
        self._probes = tuple(probes)
        self._instructions = sorted(
            (entry for probe in self._probes for entry in probe.instructions()), key=lambda entry: entry.line
        )
        self._sources = {entry.line: entry.source for entry in (*self._instructions, *self.unchecked())}
        regions = (site for probe in self._probes for site in probe.sites if site.kind != "instruction")
        self._region_sources = {site.instruction.line: site.instruction.source or site.following for site in regions}

    def instructions(self) -> Sequence[SiteInstruction]:
        return self._instructions

    def blocks(self, lines: Sequence[int]) -> Sequence[Sequence[SiteInstruction]]:
        site_lists = (sites for probe in self._probes for sites in probe.maps.values())
        return next(([site.block for site in sites] for sites in site_lists if _are_blocks(sites, lines)), ())

    def unchecked(self) -> Sequence[SiteInstruction]:
        return [site for probe in self._probes for site in probe.unchecked]

    def ptx_line(self, line: int) -> SourceLine | None:
        return self._sources.get(line)

    def following(self, line: int) -> SourceLine | None:
        return self._region_sources.get(line)


def _are_blocks(sites: Sequence[Site], lines: Sequence[int]) -> bool:
    return [site.instruction.line for site in sites] == list(lines) and all(site.block for site in sites)


class SitesFromPtx:
    """Sites derived from the PTX in a kernel's directory, which is read on first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def instructions(self) -> list[SiteInstruction]:
        """All of the kernel, in the order of the text."""
        return [self._site_of(instruction) for instruction in self._body]

    def blocks(self, lines: Sequence[int]) -> list[list[SiteInstruction]]:
        """Return its basic blocks; none unless these are the lines on which they begin."""
        blocks = basic_blocks(self._entry) if self._entry and self._body else []
        if [block[0].span.line for block in blocks] != list(lines):
            return []
        return [list(map(self._site_of, block)) for block in blocks]

    def unchecked(self) -> list[SiteInstruction]:
        """The stores to global memory whose type does not tell whether they store numbers."""
        stores = [instruction for instruction in self._body if _stores_globally(instruction)]
        types = ValueTypes(self._entry) if stores and self._entry else None
        return [self._site_of(instruction) for instruction in stores if types and types.may_be_number(instruction)]

    def ptx_line(self, line: int) -> SourceLine | None:
        """The source of any line."""
        return self._sources.ptx_line(line)

    def following(self, line: int) -> SourceLine | None:
        """The source of the first line from this one on whose source is known."""
        return self._sources.following(line)

    @cached_property
    def _sources(self) -> SourceLines:
        return SourceLines.from_folder(self._folder)

    @cached_property
    def _entry(self) -> Function | None:
        try:
            entries = parse(read_within(self._folder / "pruned.ptx", PTX_TEXT).decode("utf-8", "replace")).entries()
        except (OSError, PtxError):
            return None
        return entries[0] if entries else None

    @cached_property
    def _body(self) -> list[Instruction]:
        try:
            return list(instructions_in(self._entry.body or ())) if self._entry else []
        except PtxError:  # a body is parsed when it is first read
            return []

    def _site_of(self, instruction: Instruction) -> SiteInstruction:
        facts, line = facts_of(instruction), instruction.span.line
        return SiteInstruction(line, **facts._asdict(), source=self.ptx_line(line))


def _stores_globally(instruction: Instruction) -> bool:
    spaces = {modifier.partition("::")[0] for modifier in instruction.modifiers}
    is_store = instruction.opcode == "st" or (instruction.opcode == "wmma" and "store" in spaces)
    return is_store and not spaces & _NOT_GLOBAL


@dataclass(frozen=True, slots=True)
class AccessLine:
    """An instruction of ``pruned.ptx``: its ``opcode`` with modifiers, and the bytes of one thread's access.

    ``spaces`` are the state spaces that it names. Of machine code ``line`` is an ``Offset``.
    """

    line: int
    opcode: str
    kind: AccessKind
    bytes: int | None
    source: SourceLine | None
    spaces: frozenset[str] = frozenset()


def access_lines(folder: Path) -> dict[int, AccessLine]:
    """The accesses that a probe was at by line of ``pruned.ptx``; of several on one line the first. Empty if none is
    known.
    """
    lines: dict[int, AccessLine] = {}
    for instruction in probed_sites(folder).instructions():
        if instruction.access is not None:
            spaces = frozenset(instruction.space.split("."))
            lines.setdefault(
                instruction.line,
                AccessLine(
                    instruction.line,
                    instruction.opcode,
                    instruction.access,
                    instruction.bytes,
                    instruction.source,
                    spaces,
                ),
            )
    return lines


@dataclass(frozen=True, slots=True)
class InstructionRecord:
    """A record of a warp that names an instruction.

    ``block`` and ``thread`` are indices as in CUDA, (x, y, z); ``warp`` is its number in the block.
    """

    fields: np.void
    block: Dim3
    warp: int
    thread: Dim3
    line: int
    opcode: str
    """Opcode of the instruction; "" if it is not known."""
    source: SourceLine | None


def records_by_time(
    result: Result, layout: np.dtype[np.void], sites: ProbedSites
) -> tuple[InstructionRecord, ...] | None:
    """Return the kept records of map 0 by time, those of equal times by clock, block and warp; None without such
    records.
    """
    counts = result.record_counts(0)
    if counts is None or result.attempts(0) is None or result.sections[0].level != "warp":
        return None
    records = result.records(0, layout)
    block, warp, number = np.nonzero(np.arange(records.shape[2]) < counts[:, :, np.newaxis])
    record = records[block, warp, number]
    opcodes = {instruction.line: instruction.opcode for instruction in sites.instructions()}
    grid, size = result.header.grid, result.header.block
    return tuple(
        InstructionRecord(
            record[i],
            index_in(result.blocks[block[i]], grid),
            int(warp[i]),
            index_in(int(warp[i]) * WARP_SIZE + int(record[i]["lane"]), size),
            line := int(record[i]["line"]),
            opcodes.get(line, ""),
            sites.ptx_line(line),
        )
        for i in np.lexsort((warp, block, record["clock"], record["time"])).tolist()
    )
