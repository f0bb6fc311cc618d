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

from tui_probe.binaries import elf
from tui_probe.errors import ImageError
from tui_probe.ptx.instruction_facts import access_bytes, facts_of
from tui_probe.ptx.printer import MADE_UP
from tui_probe.ptx.tree import Directive, Instruction, Location, Scope
from tui_probe.trace.sites import MAX_SITE_NUMBER, PTX, SITES_FORMAT
from tui_probe.trace.source_lines import SourceLine, lines_of_tables, named_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tui_probe.engine.kernel import Kernel
    from tui_probe.ptx.tree import Statement

_INLINED: Final = re.compile(r"\binlined_at\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})")
_MAX_DEPTH: Final = 64
"""Calls within calls."""


class SiteSources:
    """By line of ``pruned.ptx``: what ``.loc`` directives tell, or without any the line tables of the ``image``.

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
            source = self._tables.get(line)
            return self._text(*source) if source else ""
        place = bisect_right(starts, line)
        if not place:
            return ""
        one = self._locations[place - 1]
        if one is None:
            return ""
        text = self._texts.get((one.file, one.line))
        return self._named(one) if text is None else text

    def all_files(self) -> list[str]:
        """The files that code of the kernel came from."""
        named = [self._numbered.get(one.file) for one in self._locations if one is not None and one.line]
        files = named or [source.file for source in self._tables.values()]
        return sorted({file for file in files if file})

    def places(self, line: int) -> tuple[SourceLine, ...]:
        """Where the instruction of a line comes from: the innermost place, then that of each call it was inlined for.

        Line tables of the image tell the innermost alone.
        """
        if not self._starts:
            source = self._tables.get(line)
            return () if source is None else (source,)
        number = bisect_right(self._starts, line) - 1
        if number not in self._chains:
            self._chains[number] = tuple(self._chain(number)) if number >= 0 else ()
        return self._chains[number]

    def _chain(self, number: int) -> Iterator[SourceLine]:
        """Of a directive by its number. The one that names the place of a call last before it says where that was
        inlined itself.
        """
        for _ in range(_MAX_DEPTH):
            one = self._locations[number]
            if one is None or not (file := self._numbered.get(one.file)):
                return
            yield SourceLine(file, one.line)
            found = _INLINED.search(self._kernel.module.source[one.span.start : one.span.end])
            if found is None:
                return
            call = int(found[1]), int(found[2]), int(found[3])
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
        return list(accumulate(one is None for one in self._locations))

    @cached_property
    def _by_place(self) -> dict[tuple[int, int, int, int], list[int]]:
        """The numbers of the directives that name a place, by function, file, line and column."""
        found: dict[tuple[int, int, int, int], list[int]] = {}
        for number, (function, one) in enumerate(zip(self._function_of, self._locations, strict=True)):
            if one is not None:
                found.setdefault((function, one.file, one.line, one.column), []).append(number)
        return found

    def following(self, line: int) -> str:
        """The source of the first line from this one on whose source is known."""
        if not self._starts:
            place = bisect_right(self._known, line - 1)
            return self._text(*self._tables[self._known[place]]) if place < len(self._known) else ""
        first = max(bisect_right(self._starts, line) - 1, 0)
        for place in range(first, len(self._starts)):
            one = self._locations[place]
            if one is not None and self._holds(place) and (text := self._named(one)):
                return text
        return ""

    def _holds(self, place: int) -> bool:
        """Whether text follows a directive, rather than the next one."""
        return place + 1 == len(self._starts) or self._starts[place + 1] > self._starts[place] + 1

    def _named(self, one: Location) -> str:
        """What a directive names. It is kept: compilers name the same lines again and again."""
        file = self._numbered.get(one.file)
        text = self._texts[one.file, one.line] = self._text(file, one.line) if file and one.line else ""
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
        found: list[tuple[int, Location | None]] = []
        for function in self._kernel.bodies:
            shift = self._kernel.shift_of(function)
            found.append((function.span.line + shift, None))
            found += [(one.span.line + shift, one) for one in _locations_in(function.body or ())]
        return found if any(one and one.line and self._numbered.get(one.file) for _, one in found) else []

    @cached_property
    def _locations(self) -> list[Location | None]:
        return [one for _, one in self._located]

    @cached_property
    def _starts(self) -> list[int]:
        return [line for line, _ in self._located]

    @cached_property
    def _numbered(self) -> dict[int, str]:
        directives = (item for item in self._kernel.module.items if isinstance(item, Directive))
        return named_files("\n".join(item.text for item in directives if item.name == "file"))

    @cached_property
    def _tables(self) -> dict[int, SourceLine]:
        if not self._image.startswith(elf.MAGIC):
            return {}
        try:
            return lines_of_tables(self._image, self._kernel.entry, self._kernel.shift_of(self._kernel.entry))
        except ImageError:
            return {}

    @cached_property
    def _known(self) -> list[int]:
        return sorted(self._tables)


def _locations_in(body: Sequence[Statement]) -> list[Location]:
    """In the order of the text; by the exact type, since there are as many statements as the kernel has lines."""
    found: list[Location] = []
    for node in body:
        kind = type(node)
        if kind is Location:
            found.append(node)  # type: ignore[arg-type]
        elif kind is Scope:
            found += _locations_in(node.body)  # type: ignore[union-attr]
    return found


SiteKind: TypeAlias = Literal["instruction", "block", "loop"]


@dataclass(slots=True)
class NotedSite:
    """An instruction that points are at, or the first one of a basic block or loop, as it stands in ``pruned.ptx``.

    ``written`` is what takes its place in the probed kernel, itself if nothing does. ``points`` are the names of the
    points in the probe; ``block`` holds all instructions of a basic block.
    """

    at: SiteKind
    instruction: Instruction
    written: Instruction
    points: tuple[str, ...]
    block: Sequence[Instruction] = ()


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
    ) -> None:
        """A point of that name is there. All points of one place come one after another."""
        last = self.sites[-1] if self.sites else None
        if last is None or last.instruction is not instruction or last.at != at:
            self.sites.append(NotedSite(at, instruction, written, (point,), block))
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
            self.maps = {name: [places[id(one)] for one in instructions] for name, instructions in records.items()}


_MAX_CACHED_KINDS: Final = 4096


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
    unchecked = [writer.instruction(each) for each in notes.unchecked]
    maps = json.dumps({name: {"sites": numbers} for name, numbers in notes.maps.items()})
    return (
        f'{{"version": {SITES_FORMAT},\n"files": {json.dumps(list(writer.sources.files))},\n'
        f'"probes": [{{"probe": {json.dumps(probe)}, "way": "{PTX}",\n"sites": {_json_list(sites)},\n'
        f'"maps": {maps},\n"unchecked": {_json_list(unchecked)}}}]}}\n'
    )


def _json_list(items: Iterable[str]) -> str:
    return "[" + ",\n".join(items) + "]"


class _SiteWriter:
    """The text of single sites."""

    def __init__(self, kernel: Kernel, image: bytes) -> None:
        self.sources = SiteSources(kernel, image)
        self._source_of = self.sources.of
        self._line_of = kernel.line_of
        self._named_space = kernel.named_space

    def block(self, site: NotedSite, *, whole: bool) -> str:
        """A basic block or a loop. ``whole`` tells that its instructions are named, each with its line."""
        line, rest = self._line_of(site.instruction), ""
        if not self._source_of(line) and (following := self.sources.following(line)):
            rest = f', "following": {following}'
        if whole:
            rest += f', "block": [{", ".join(map(self.instruction, site.block))}]'
        return self.instruction(site.instruction, site.at, site.points, rest)

    def instruction(self, one: Instruction, at: str = "", points: tuple[str, ...] = (), rest: str = "") -> str:
        """``at`` and ``points`` are those of a site, ``rest`` is what else is told of it."""
        line, opcode = self._line_of(one), one.opcode
        copied = access_bytes(one) if opcode == "cp" else None
        told = _instruction_fields(at, points, opcode, one.modifiers, copied, self._named_space(one))
        if source := self._source_of(line):
            return f'{{"line": {line}, {told}, "source": {source}{rest}}}'
        return f'{{"line": {line}, {told}{rest}}}'


@lru_cache(maxsize=_MAX_CACHED_KINDS)
def _instruction_fields(
    at: str, points: tuple[str, ...], opcode: str, modifiers: tuple[str, ...], copied: int | None, named_space: str
) -> str:
    """What is the same for all instructions of a name at which the same points are; a copy has its bytes among its
    operands, and an access without a state space may have one by the variable that it names.
    """
    one = Instruction(opcode, modifiers, (), MADE_UP)
    facts = facts_of(one)
    size = copied if opcode == "cp" else facts.bytes
    told: dict[str, object] = {"at": at, "points": points} if at else {}
    told |= {
        "opcode": facts.opcode,
        "class": facts.work,
        "type": facts.type or None,
        "space": facts.space or named_space or None,
        "access": facts.access,
        "bytes": size if size is not None and 0 <= size < MAX_SITE_NUMBER else None,
    }
    return json.dumps({name: value for name, value in told.items() if value is not None})[1:-1]
