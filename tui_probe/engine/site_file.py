"""Write ``sites.json``: the sites of a probe in a kernel, with their source lines, so that readers need no PTX.

:mod:`tui_probe.trace.sites` reads it and says what is in it. It is written as text, site by site, from parts that are
made once for each kind of instruction, while the assembler works: without one the program waits for it.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tui_probe.errors import ImageError
from tui_probe.ptx.images import cubin_with_ptx, image_entries
from tui_probe.ptx.instruction_facts import access_bytes, facts_of
from tui_probe.ptx.operands import MADE_UP
from tui_probe.ptx.parameters import barrier_names
from tui_probe.ptx.tree import Directive, Instruction, Location, Scope, instructions_in
from tui_probe.trace.kernel_files import MAX_SITE_NUMBER, PTX, SITES_FORMAT
from tui_probe.trace.source_lines import SourceLine, chains_of_tables, is_of_toolkit, named_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tui_probe.engine.kernel import Kernel
    from tui_probe.ptx.phases import PhaseStart
    from tui_probe.ptx.tree import Statement

_INLINED_AT: Final = re.compile(r"\binlined_at\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})")
_MAX_DEPTH: Final = 64
"""Calls within calls."""
SiteKind: TypeAlias = Literal["instruction", "block", "loop", "phase"]
_MAX_CACHED_KINDS: Final = 4096


class SiteSources:
    """Sources by line of ``pruned.ptx``: from ``.loc`` directives, or without any from the line tables of the
    ``image``.

    Sources are given as the text of ``sites.json``, "" where they are not known. ``files`` are those that were named so
    far, with their numbers.
    """

    def __init__(self, kernel: Kernel, image: bytes) -> None:
        self._kernel = kernel
        self._image = image
        self._texts: dict[tuple[int, int], str] = {}
        self._chains: dict[int, tuple[SourceLine, ...]] = {}
        self.files: dict[str, int] = {}

    def source_of(self, line: int) -> str:
        """Return the source of a line that has an instruction."""
        if not (directive_lines := self._directive_lines):
            chain = self._chains_by_line.get(line)
            return self._source_text(*chain[0]) if chain else ""
        index = bisect_right(directive_lines, line)
        if not index:
            return ""
        location = self._locations[index - 1]
        if location is None:
            return ""
        text = self._texts.get((location.file, location.line))
        return self._directive_text(location) if text is None else text

    def all_files(self) -> list[str]:
        """Return the source files of the kernel's code."""
        directive_files = [
            self._file_names.get(location.file)
            for location in self._locations
            if location is not None and location.line
        ]
        files = directive_files or [chain[0].file for chain in self._chains_by_line.values()]
        return sorted({file for file in files if file})

    def source_chain(self, line: int) -> tuple[SourceLine, ...]:
        """Return the source of a line's instruction: innermost location first, then that of each inlined call."""
        if not self._directive_lines:
            return self._chains_by_line.get(line, ())
        number = bisect_right(self._directive_lines, line) - 1
        if number not in self._chains:
            self._chains[number] = tuple(self._chain(number)) if number >= 0 else ()
        return self._chains[number]

    def program_source(self, line: int) -> str:
        """Return the source of a line's instruction; if it is in a header of the CUDA Toolkit, that of the call."""
        program_lines = (
            source_line
            for source_line in self.source_chain(line)
            if source_line.line and not is_of_toolkit(source_line.file)
        )
        return next((self._source_text(*source_line) for source_line in program_lines), self.source_of(line))

    def call_source(self, line: int) -> str:
        """Return the program's call that inlined an instruction from a header of the CUDA Toolkit; "" for others."""
        innermost = next(iter(self.source_chain(line)), None)
        return self.program_source(line) if innermost is not None and is_of_toolkit(innermost.file) else ""

    def _chain(self, number: int) -> Iterator[SourceLine]:
        """Yield the source line of a directive, then the lines of the calls through which it was inlined.

        A call's place is that of the last directive before it, which may be inlined itself.
        """
        for _ in range(_MAX_DEPTH):
            location = self._locations[number]
            if location is None or not (file := self._file_names.get(location.file)):
                return
            yield SourceLine(file, location.line)
            match = _INLINED_AT.search(self._kernel.module.source[location.span.start : location.span.end])
            if match is None:
                return
            call = int(match[1]), int(match[2]), int(match[3])
            earlier_numbers = self._numbers_by_location.get((self._function_numbers[number], *call), [])
            index = bisect_left(earlier_numbers, number)
            if not index:
                if file := self._file_names.get(call[0]):
                    yield SourceLine(file, call[1])
                return
            number = earlier_numbers[index - 1]

    @cached_property
    def _function_numbers(self) -> list[int]:
        """The number of the function that each directive is in."""
        return list(accumulate(location is None for location in self._locations))

    @cached_property
    def _numbers_by_location(self) -> dict[tuple[int, int, int, int], list[int]]:
        """The numbers of the directives that name a place, by function, file, line and column."""
        numbers: dict[tuple[int, int, int, int], list[int]] = {}
        for number, (function, location) in enumerate(zip(self._function_numbers, self._locations, strict=True)):
            if location is not None:
                numbers.setdefault((function, location.file, location.line, location.column), []).append(number)
        return numbers

    def next_source(self, line: int) -> str:
        """Return the source of the first line from this one on whose source is known."""
        if not self._directive_lines:
            index = bisect_right(self._table_lines, line - 1)
            return (
                self._source_text(*self._chains_by_line[self._table_lines[index]][0])
                if index < len(self._table_lines)
                else ""
            )
        start = max(bisect_right(self._directive_lines, line) - 1, 0)
        for index in range(start, len(self._directive_lines)):
            location = self._locations[index]
            if location is not None and self._has_text(index) and (text := self._directive_text(location)):
                return text
        return ""

    def _has_text(self, index: int) -> bool:
        """Return whether text follows a directive, rather than the next one."""
        return (
            index + 1 == len(self._directive_lines)
            or self._directive_lines[index + 1] > self._directive_lines[index] + 1
        )

    def _directive_text(self, location: Location) -> str:
        """Return the file that a directive names. Cached: compilers name the same lines again and again."""
        file = self._file_names.get(location.file)
        text = self._texts[location.file, location.line] = (
            self._source_text(file, location.line) if file and location.line else ""
        )
        return text

    def _source_text(self, file: str, line: int) -> str:
        return (
            f'{{"file": {self.files.setdefault(file, len(self.files))}, "line": {line}}}'
            if line < MAX_SITE_NUMBER
            else ""
        )

    @cached_property
    def _directives(self) -> list[tuple[int, Location | None]]:
        """The ``.loc`` directives with their lines, and None where a function begins; none if none names a source."""
        directives: list[tuple[int, Location | None]] = []
        for function in self._kernel.bodies:
            shift = self._kernel.shift_of(function)
            directives.append((function.span.line + shift, None))
            directives += [(location.span.line + shift, location) for location in _locations_in(function.body or ())]
        return (
            directives
            if any(location and location.line and self._file_names.get(location.file) for _, location in directives)
            else []
        )

    @cached_property
    def _locations(self) -> list[Location | None]:
        return [location for _, location in self._directives]

    @cached_property
    def _directive_lines(self) -> list[int]:
        return [line for line, _ in self._directives]

    @cached_property
    def _file_names(self) -> dict[int, str]:
        directives = (item for item in self._kernel.module.items if isinstance(item, Directive))
        return named_files("\n".join(item.text for item in directives if item.name == "file"))

    @cached_property
    def _chains_by_line(self) -> dict[int, tuple[SourceLine, ...]]:
        kernel = self._kernel
        try:
            cubin = cubin_with_ptx(image_entries(self._image), kernel.module.source)
            return chains_of_tables(cubin, [(body, kernel.shift_of(body)) for body in kernel.bodies])
        except ImageError:
            return {}

    @cached_property
    def _table_lines(self) -> list[int]:
        return sorted(self._chains_by_line)


def _locations_in(body: Sequence[Statement]) -> list[Location]:
    """Return the ``.loc`` directives in textual order; comparing exact types is fast over all statements."""
    locations: list[Location] = []
    for node in body:
        kind = type(node)
        if kind is Location:
            locations.append(node)  # type: ignore[arg-type]
        elif kind is Scope:
            locations += _locations_in(node.body)  # type: ignore[union-attr]
    return locations


@dataclass(slots=True)
class SiteNote:
    """An instruction that points are at, or the first one of a basic block or loop, as it is in ``pruned.ptx``.

    ``replacement`` is the instruction in the probed kernel, the same one unless it was rewritten. ``points`` are the
    names of the points in the probe; ``block`` holds all instructions of a basic block.
    """

    kind: SiteKind
    instruction: Instruction
    replacement: Instruction
    points: tuple[str, ...]
    block: Sequence[Instruction] = ()
    phase: Mapping[str, object] | None = None
    main: Instruction | None = None
    """The instruction whose source line is that of the site; None: its own."""


class SiteNotes:
    """The sites of one probe in one kernel, in the order in which they were met.

    ``maps`` are those that maps have a record for, in the order of the records, as places in ``sites``. ``unchecked``
    are instructions that a point is for and that were left out since nothing tells what they store.
    """

    def __init__(self) -> None:
        self.sites: list[SiteNote] = []
        self.maps: dict[str, list[int]] = {}
        self.unchecked: list[Instruction] = []

    def add(
        self,
        kind: SiteKind,
        instruction: Instruction,
        replacement: Instruction,
        point: str,
        block: Sequence[Instruction] = (),
        phase: Mapping[str, object] | None = None,
        main: Instruction | None = None,
    ) -> None:
        """Note a point of that name at an instruction. All points of one instruction must be added in sequence."""
        last_site = self.sites[-1] if self.sites else None
        if last_site is None or last_site.instruction is not instruction or last_site.kind != kind:
            self.sites.append(SiteNote(kind, instruction, replacement, (point,), block, phase, main))
        elif point not in last_site.points:
            last_site.points += (point,)

    def leave_out(self, instruction: Instruction) -> None:
        """Note an instruction without a site, since the type of the values that it stores is unknown."""
        if not self.unchecked or self.unchecked[-1] is not instruction:
            self.unchecked.append(instruction)

    def keep_records(self, records: Mapping[str, Iterable[Instruction]]) -> None:
        """Note the instructions in the probed kernel that maps have records for, by the name of the map."""
        if records:
            indices = {id(site.replacement): index for index, site in reversed(list(enumerate(self.sites)))}
            self.maps = {
                name: [indices[id(instruction)] for instruction in instructions]
                for name, instructions in records.items()
            }


def site_file(probe: str, kernel: Kernel, notes: SiteNotes, image: bytes) -> str:
    """Return the text of the file. ``image`` contains the kernel, and may have its line table."""
    writer = _SiteWriter(kernel, image)
    recorded_numbers = {number for numbers in notes.maps.values() for number in numbers}
    sites = [
        writer.instruction_text(site.instruction, site.kind, site.points)
        if site.kind == "instruction"
        else writer.block_text(site, names_instructions=number in recorded_numbers)
        for number, site in enumerate(notes.sites)
    ]
    unchecked = [writer.instruction_text(instruction) for instruction in notes.unchecked]
    maps = json.dumps({name: {"sites": numbers} for name, numbers in notes.maps.items()})
    return (
        f'{{"version": {SITES_FORMAT},\n"files": {json.dumps(list(writer.sources.files))},\n'
        f'"probes": [{{"probe": {json.dumps(probe)}, "way": "{PTX}",\n"sites": {_json_list(sites)},\n'
        f'"maps": {maps},\n"unchecked": {_json_list(unchecked)}}}]}}\n'
    )


def phase_fields(start: PhaseStart, loop: int | None) -> dict[str, object]:
    """Return the fields of a phase in ``sites.json``; ``loop``: line or offset of its loop's first instruction."""
    return {
        "work": start.work,
        "named": start.is_named,
        "stage": start.stage,
        "loop": loop,
        "depth": start.depth,
        "iterates": start.iterates,
        **({"every": start.sample_every} if start.sample_every else {}),
        "signals": start.signals,
        "instructions": start.instructions,
        "moved": start.moved_count,
        "products": start.multiply_adds,
        "waits": [*start.waits],
        **({"parameters": [*start.parameters]} if start.parameters else {}),
        **({"barriers": [*start.barriers]} if start.barriers else {}),
        **({"signals_first": True} if start.signals_first else {}),
        **({"signaled": [barrier._asdict() for barrier in start.signaled]} if start.signaled else {}),
    }


def _json_list(items: Iterable[str]) -> str:
    return "[" + ",\n".join(items) + "]"


class _SiteWriter:
    """The text of single sites."""

    def __init__(self, kernel: Kernel, image: bytes) -> None:
        self.sources = SiteSources(kernel, image)
        self._kernel = kernel
        self._source_of = self.sources.source_of
        self._line_of = kernel.line_of
        self._named_space = kernel.named_space

    @cached_property
    def _barriers(self) -> dict[int, str]:
        """The names of the mbarriers of instructions."""
        names: dict[int, str] = {}
        for function in self._kernel.bodies:
            names_of = barrier_names(function)
            barriers = (
                instruction for instruction in instructions_in(function.body or ()) if instruction.opcode == "mbarrier"
            )
            names |= {id(instruction): ", ".join(names_of(instruction)) for instruction in barriers}
        return names

    def block_text(self, site: SiteNote, *, names_instructions: bool) -> str:
        """Return the text of a basic block or a loop; with ``names_instructions`` it lists the block's instructions."""
        line, suffix = self._line_of(site.instruction), ""
        if not self._source_of(line) and (next_source := self.sources.next_source(line)):
            suffix = f', "following": {next_source}'
        if names_instructions:
            suffix += f', "block": [{", ".join(map(self.instruction_text, site.block))}]'
        if site.phase is not None:
            suffix += f', "phase": {json.dumps(site.phase)}'
        source = self._phase_source(site) if site.kind == "phase" else None
        return self.instruction_text(site.instruction, site.kind, site.points, suffix, source)

    def _phase_source(self, site: SiteNote) -> str:
        main = "" if site.main is None else self.sources.program_source(self._line_of(site.main))
        return main or self.sources.program_source(self._line_of(site.instruction))

    def instruction_text(
        self,
        instruction: Instruction,
        kind: str = "",
        points: tuple[str, ...] = (),
        suffix: str = "",
        source: str | None = None,
    ) -> str:
        """Return the text of an instruction. ``kind`` and ``points`` are those of a site, ``suffix`` is the end of its
        JSON text. ``source`` None: that of the instruction.
        """
        line, opcode = self._line_of(instruction), instruction.opcode
        if opcode == "mbarrier" and (barrier := self._barriers.get(id(instruction))):
            suffix = f', "barrier": {json.dumps(barrier)}{suffix}'
        if source is None:
            source = self._source_of(line)
            if source and (call := self.sources.call_source(line)) and call != source:
                suffix = f', "call": {call}{suffix}'
        copied_bytes = access_bytes(instruction) if opcode == "cp" else None
        fields = _instruction_fields(
            kind, points, opcode, instruction.modifiers, copied_bytes, self._named_space(instruction)
        )
        if source:
            return f'{{"line": {line}, {fields}, "source": {source}{suffix}}}'
        return f'{{"line": {line}, {fields}{suffix}}}'


@lru_cache(maxsize=_MAX_CACHED_KINDS)
def _instruction_fields(
    kind: str,
    points: tuple[str, ...],
    opcode: str,
    modifiers: tuple[str, ...],
    copied_bytes: int | None,
    named_space: str,
) -> str:
    """Return the JSON text of fields that instructions of one name with the same points share. ``copied_bytes`` are
    those of a copy, ``named_space`` is the state space of the variable that an access without a space names.
    """
    instruction = Instruction(opcode, modifiers, (), MADE_UP)
    facts = facts_of(instruction)
    size = copied_bytes if opcode == "cp" else facts.bytes
    fields: dict[str, object] = {"at": kind, "points": points} if kind else {}
    fields |= {
        "opcode": facts.opcode,
        "class": facts.work,
        "type": facts.type or None,
        "space": facts.space or named_space or None,
        "access": facts.access,
        "bytes": size if size is not None and 0 <= size < MAX_SITE_NUMBER else None,
    }
    return json.dumps({name: value for name, value in fields.items() if value is not None})[1:-1]
