"""The source lines of a few lines of a kernel that is parsed already: what ``trace/source_lines`` finds in its text."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from tui_probe.errors import ImageError
from tui_probe.ptx import elf
from tui_probe.ptx.tree import Directive, Location, Scope
from tui_probe.trace.sites import MOST
from tui_probe.trace.source_lines import SourceLine, lines_of_tables, named_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.engine.kernel import Kernel
    from tui_probe.ptx.tree import Statement

_INLINED: Final = re.compile(r"\binlined_at\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})")
_DEEPEST: Final = 64
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
        for _ in range(_DEEPEST):
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
        return f'{{"file": {self.files.setdefault(file, len(self.files))}, "line": {line}}}' if line < MOST else ""

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
