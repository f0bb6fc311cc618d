"""The source lines of a few lines of a kernel that is parsed already: what ``trace/source_lines`` finds in its text."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from tui_probe.errors import ImageError
from tui_probe.ptx import elf
from tui_probe.ptx.tree import Directive, Location, Scope
from tui_probe.trace.sites import MOST
from tui_probe.trace.source_lines import lines_of_tables, named_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.engine.kernel import Kernel
    from tui_probe.ptx.tree import Statement
    from tui_probe.trace.source_lines import SourceLine


class SiteSources:
    """By line of ``pruned.ptx``: what ``.loc`` directives tell, or without any the line tables of the ``image``.

    Sources are given as the text of ``sites.json``, "" where they are not known. ``files`` are those that were named so
    far, with their numbers.
    """

    def __init__(self, kernel: Kernel, image: bytes) -> None:
        self._kernel = kernel
        self._image = image
        self._texts: dict[int, str] = {}
        self.files: dict[str, int] = {}

    def of(self, line: int) -> str:
        """The source of a line that has an instruction."""
        if self._locations:
            place = bisect_right(self._starts, line) - 1
            text = self._texts.get(place)
            return self._named(place) if text is None else text
        source = self._tables.get(line)
        return self._text(*source) if source else ""

    def following(self, line: int) -> str:
        """The source of the first line from this one on whose source is known."""
        if self._locations:
            later = range(max(bisect_right(self._starts, line) - 1, 0), len(self._starts))
            return next(filter(None, map(self._named, later)), "")
        place = bisect_right(self._known, line - 1)
        return self._text(*self._tables[self._known[place]]) if place < len(self._known) else ""

    def _named(self, place: int) -> str:
        """What a directive names; -1 is in front of all."""
        one = self._locations[place]
        file = self._numbered.get(one.file) if place >= 0 else None
        text = self._texts[place] = self._text(file, one.line) if file and one.line else ""
        return text

    def _text(self, file: str, line: int) -> str:
        return f'{{"file": {self.files.setdefault(file, len(self.files))}, "line": {line}}}' if line < MOST else ""

    @cached_property
    def _locations(self) -> list[Location]:
        """The ``.loc`` directives that text follows; none if none names a source."""
        found = _locations_in(self._kernel.entry.body or ())
        if not any(one.line and self._numbered.get(one.file) for one in found):
            return []
        return [one for one, other in pairwise(found) if other.span.line > one.span.line + 1] + found[-1:]

    @cached_property
    def _starts(self) -> list[int]:
        return [one.span.line + self.shift for one in self._locations]

    @cached_property
    def _numbered(self) -> dict[int, str]:
        directives = (item for item in self._kernel.module.items if isinstance(item, Directive))
        return named_files("\n".join(item.text for item in directives if item.name == "file"))

    @cached_property
    def _tables(self) -> dict[int, SourceLine]:
        if not self._image.startswith(elf.MAGIC):
            return {}
        try:
            return lines_of_tables(self._image, self._kernel.entry, self.shift)
        except ImageError:
            return {}

    @cached_property
    def _known(self) -> list[int]:
        return sorted(self._tables)

    @cached_property
    def shift(self) -> int:
        """Lines from the place of the kernel in its module to that in the pruned text."""
        return self._kernel.first_line - self._kernel.entry.span.line


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
