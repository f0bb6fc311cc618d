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

_INLINED: Final = re.compile(r"\binlined_at\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})")
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

    def of(self, line: int) -> str:
        """The source of a line that has an instruction."""
        if not (starts := self._starts):
            chain = self._tables.get(line)
            return self._text(*chain[0]) if chain else ""
        place = bisect_right(starts, line)
        if not place:
            return ""
        location = self._locations[place - 1]
        if location is None:
            return ""
        text = self._texts.get((location.file, location.line))
        return self._named(location) if text is None else text

    def all_files(self) -> list[str]:
        """The files that code of the kernel came from."""
        named = [
            self._numbered.get(location.file) for location in self._locations if location is not None and location.line
        ]
        files = named or [chain[0].file for chain in self._tables.values()]
        return sorted({file for file in files if file})

    def places(self, line: int) -> tuple[SourceLine, ...]:
        """Return the source of a line's instruction: innermost location first, then that of each inlined call."""
        if not self._starts:
            return self._tables.get(line, ())
        number = bisect_right(self._starts, line) - 1
        if number not in self._chains:
            self._chains[number] = tuple(self._chain(number)) if number >= 0 else ()
        return self._chains[number]

    def of_program(self, line: int) -> str:
        """The source of a line's instruction; of one inlined from a header of the CUDA Toolkit that of the call."""
        outside = (place for place in self.places(line) if place.line and not is_of_toolkit(place.file))
        return next((self._text(*place) for place in outside), self.of(line))

    def call(self, line: int) -> str:
        """The call by the program through which an instruction of a header of the CUDA Toolkit was inlined, or ""."""
        innermost = next(iter(self.places(line)), None)
        return self.of_program(line) if innermost is not None and is_of_toolkit(innermost.file) else ""

    def _chain(self, number: int) -> Iterator[SourceLine]:
        """Yield the source line of a directive, then the lines of the calls through which it was inlined.

        A call's place is that of the last directive before it, which may be inlined itself.
        """
        for _ in range(_MAX_DEPTH):
            location = self._locations[number]
            if location is None or not (file := self._numbered.get(location.file)):
                return
            yield SourceLine(file, location.line)
            match = _INLINED.search(self._kernel.module.source[location.span.start : location.span.end])
            if match is None:
                return
            call = int(match[1]), int(match[2]), int(match[3])
            earlier = self._by_place.get((self._function_of[number], *call), [])
            place = bisect_left(earlier, number)
            if not place:
                if file := self._numbered.get(call[0]):
                    yield SourceLine(file, call[1])
                return
            number = earlier[place - 1]

    @cached_property
    def _function_of(self) -> list[int]:
        """The number of the function that each directive is in."""
        return list(accumulate(location is None for location in self._locations))

    @cached_property
    def _by_place(self) -> dict[tuple[int, int, int, int], list[int]]:
        """The numbers of the directives that name a place, by function, file, line and column."""
        places: dict[tuple[int, int, int, int], list[int]] = {}
        for number, (function, location) in enumerate(zip(self._function_of, self._locations, strict=True)):
            if location is not None:
                places.setdefault((function, location.file, location.line, location.column), []).append(number)
        return places

    def following(self, line: int) -> str:
        """The source of the first line from this one on whose source is known."""
        if not self._starts:
            place = bisect_right(self._known, line - 1)
            return self._text(*self._tables[self._known[place]][0]) if place < len(self._known) else ""
        first = max(bisect_right(self._starts, line) - 1, 0)
        for place in range(first, len(self._starts)):
            location = self._locations[place]
            if location is not None and self._holds(place) and (text := self._named(location)):
                return text
        return ""

    def _holds(self, place: int) -> bool:
        """Return whether text follows a directive, rather than the next one."""
        return place + 1 == len(self._starts) or self._starts[place + 1] > self._starts[place] + 1

    def _named(self, location: Location) -> str:
        """Return the file that a directive names. Cached: compilers name the same lines again and again."""
        file = self._numbered.get(location.file)
        text = self._texts[location.file, location.line] = (
            self._text(file, location.line) if file and location.line else ""
        )
        return text

    def _text(self, file: str, line: int) -> str:
        return (
            f'{{"file": {self.files.setdefault(file, len(self.files))}, "line": {line}}}'
            if line < MAX_SITE_NUMBER
            else ""
        )

    @cached_property
    def _located(self) -> list[tuple[int, Location | None]]:
        """The ``.loc`` directives with their lines, and None where a function begins; none if none names a source."""
        located: list[tuple[int, Location | None]] = []
        for function in self._kernel.bodies:
            shift = self._kernel.shift_of(function)
            located.append((function.span.line + shift, None))
            located += [(location.span.line + shift, location) for location in _locations_in(function.body or ())]
        return (
            located
            if any(location and location.line and self._numbered.get(location.file) for _, location in located)
            else []
        )

    @cached_property
    def _locations(self) -> list[Location | None]:
        return [location for _, location in self._located]

    @cached_property
    def _starts(self) -> list[int]:
        return [line for line, _ in self._located]

    @cached_property
    def _numbered(self) -> dict[int, str]:
        directives = (item for item in self._kernel.module.items if isinstance(item, Directive))
        return named_files("\n".join(item.text for item in directives if item.name == "file"))

    @cached_property
    def _tables(self) -> dict[int, tuple[SourceLine, ...]]:
        kernel = self._kernel
        try:
            cubin = cubin_with_ptx(image_entries(self._image), kernel.module.source)
            return chains_of_tables(cubin, [(body, kernel.shift_of(body)) for body in kernel.bodies])
        except ImageError:
            return {}

    @cached_property
    def _known(self) -> list[int]:
        return sorted(self._tables)


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
class NotedSite:
    """An instruction that points are at, or the first one of a basic block or loop, as it is in ``pruned.ptx``.

    ``written`` is what takes its place in the probed kernel, itself if nothing does. ``points`` are the names of the
    points in the probe; ``block`` holds all instructions of a basic block.
    """

    at: SiteKind
    instruction: Instruction
    written: Instruction
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
        self.sites: list[NotedSite] = []
        self.maps: dict[str, list[int]] = {}
        self.unchecked: list[Instruction] = []

    def add(
        self,
        at: SiteKind,
        instruction: Instruction,
        written: Instruction,
        point: str,
        block: Sequence[Instruction] = (),
        phase: Mapping[str, object] | None = None,
        main: Instruction | None = None,
    ) -> None:
        """A point of that name is there. All points of one place come one after another."""
        last = self.sites[-1] if self.sites else None
        if last is None or last.instruction is not instruction or last.at != at:
            self.sites.append(NotedSite(at, instruction, written, (point,), block, phase, main))
        elif point not in last.points:
            last.points += (point,)

    def leave_out(self, instruction: Instruction) -> None:
        """Nothing tells what this one stores."""
        if not self.unchecked or self.unchecked[-1] is not instruction:
            self.unchecked.append(instruction)

    def keep(self, records: Mapping[str, Iterable[Instruction]]) -> None:
        """The instructions, as written, that maps have a record for, by the name of the map."""
        if records:
            places = {id(site.written): place for place, site in reversed(list(enumerate(self.sites)))}
            self.maps = {
                name: [places[id(instruction)] for instruction in instructions]
                for name, instructions in records.items()
            }


def site_file(probe: str, kernel: Kernel, notes: SiteNotes, image: bytes) -> str:
    """The text of the file. ``image`` is what the kernel came from, which may tell its source lines."""
    writer = _SiteWriter(kernel, image)
    recorded = {number for numbers in notes.maps.values() for number in numbers}
    sites = [
        writer.instruction(site.instruction, site.at, site.points)
        if site.at == "instruction"
        else writer.block(site, whole=number in recorded)
        for number, site in enumerate(notes.sites)
    ]
    unchecked = [writer.instruction(instruction) for instruction in notes.unchecked]
    maps = json.dumps({name: {"sites": numbers} for name, numbers in notes.maps.items()})
    return (
        f'{{"version": {SITES_FORMAT},\n"files": {json.dumps(list(writer.sources.files))},\n'
        f'"probes": [{{"probe": {json.dumps(probe)}, "way": "{PTX}",\n"sites": {_json_list(sites)},\n'
        f'"maps": {maps},\n"unchecked": {_json_list(unchecked)}}}]}}\n'
    )


def phase_fields(start: PhaseStart, loop: int | None) -> dict[str, object]:
    """The fields of a phase in ``sites.json``; ``loop`` is the line or offset of its loop's first instruction."""
    return {
        "work": start.work,
        "named": start.named,
        "stage": start.stage,
        "loop": loop,
        "depth": start.depth,
        "iterates": start.iterates,
        **({"every": start.every} if start.every else {}),
        "signals": start.signals,
        "instructions": start.instructions,
        "moved": start.moved,
        "products": start.products,
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
        self._source_of = self.sources.of
        self._line_of = kernel.line_of
        self._named_space = kernel.named_space

    @cached_property
    def _barriers(self) -> dict[int, str]:
        """The names of the mbarriers of instructions."""
        names: dict[int, str] = {}
        for function in self._kernel.bodies:
            named = barrier_names(function)
            barriers = (
                instruction for instruction in instructions_in(function.body or ()) if instruction.opcode == "mbarrier"
            )
            names |= {id(instruction): ", ".join(named(instruction)) for instruction in barriers}
        return names

    def block(self, site: NotedSite, *, whole: bool) -> str:
        """A basic block or a loop. ``whole`` tells that its instructions are named, each with its line."""
        line, suffix = self._line_of(site.instruction), ""
        if not self._source_of(line) and (following := self.sources.following(line)):
            suffix = f', "following": {following}'
        if whole:
            suffix += f', "block": [{", ".join(map(self.instruction, site.block))}]'
        if site.phase is not None:
            suffix += f', "phase": {json.dumps(site.phase)}'
        source = self._phase_source(site) if site.at == "phase" else None
        return self.instruction(site.instruction, site.at, site.points, suffix, source)

    def _phase_source(self, site: NotedSite) -> str:
        main = "" if site.main is None else self.sources.of_program(self._line_of(site.main))
        return main or self.sources.of_program(self._line_of(site.instruction))

    def instruction(
        self,
        instruction: Instruction,
        at: str = "",
        points: tuple[str, ...] = (),
        suffix: str = "",
        source: str | None = None,
    ) -> str:
        """``at`` and ``points`` are those of a site, ``suffix`` is the end of its JSON text. ``source`` None: that of
        the instruction.
        """
        line, opcode = self._line_of(instruction), instruction.opcode
        if opcode == "mbarrier" and (barrier := self._barriers.get(id(instruction))):
            suffix = f', "barrier": {json.dumps(barrier)}{suffix}'
        if source is None:
            source = self._source_of(line)
            if source and (call := self.sources.call(line)) and call != source:
                suffix = f', "call": {call}{suffix}'
        copied = access_bytes(instruction) if opcode == "cp" else None
        fields = _instruction_fields(at, points, opcode, instruction.modifiers, copied, self._named_space(instruction))
        if source:
            return f'{{"line": {line}, {fields}, "source": {source}{suffix}}}'
        return f'{{"line": {line}, {fields}{suffix}}}'


@lru_cache(maxsize=_MAX_CACHED_KINDS)
def _instruction_fields(
    at: str, points: tuple[str, ...], opcode: str, modifiers: tuple[str, ...], copied: int | None, named_space: str
) -> str:
    """Fields common to all instructions of a name with the same points; a copy has its bytes among its
    operands, and an access without a state space may have one by the variable that it names.
    """
    instruction = Instruction(opcode, modifiers, (), MADE_UP)
    facts = facts_of(instruction)
    size = copied if opcode == "cp" else facts.bytes
    fields: dict[str, object] = {"at": at, "points": points} if at else {}
    fields |= {
        "opcode": facts.opcode,
        "class": facts.work,
        "type": facts.type or None,
        "space": facts.space or named_space or None,
        "access": facts.access,
        "bytes": size if size is not None and 0 <= size < MAX_SITE_NUMBER else None,
    }
    return json.dumps({name: value for name, value in fields.items() if value is not None})[1:-1]
