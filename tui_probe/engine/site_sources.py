"""The source lines of a few lines of a kernel that is parsed already: what ``trace/source_lines`` finds in its text."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from tui_probe.errors import ImageError
from tui_probe.ptx import elf
from tui_probe.ptx.tree import Directive, Location, Scope, Span
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

    def places(self, line: int) -> Iterator[SourceLine]:
        """Where the instruction of a line comes from: the innermost place, then that of each call it was inlined for.

        Line tables of the image tell the innermost alone.
        """
        if not (starts := self._starts):
            if (source := self._tables.get(line)) is not None:
                yield source
            return
        number = bisect_right(starts, line) - 1
        place = self._locations[number] if number >= 0 else None
        for _ in range(_DEEPEST):
            if place is None or not (file := self._numbered.get(place.file)):
                return
            yield SourceLine(file, place.line)
            if (call := self._call_of(place)) is None:
                return
            number, place = self._named_before(number, call)

    def _call_of(self, place: Location) -> Location | None:
        """Where the code at a place was inlined; None for code that was not."""
        text = self._kernel.module.source[place.span.start : place.span.end]
        found = _INLINED.search(text)
        return None if found is None else Location(int(found[1]), int(found[2]), int(found[3]), place.span)

    def _named_before(self, number: int, call: Location) -> tuple[int, Location]:
        """The directive that names the place of a call last before this one: it says where that was inlined itself."""
        for earlier in range(number - 1, -1, -1):
            one = self._locations[earlier]
            if one is None:
                break
            if (one.file, one.line, one.column) == (call.file, call.line, call.column):
                return earlier, one
        return number, replace(call, span=Span(0, 0, 0))

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
