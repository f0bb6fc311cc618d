"""The source lines of a few lines of a kernel that is parsed already: what ``trace/source_lines`` finds in its text."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from tui_probe.errors import ImageError
from tui_probe.ptx import elf
from tui_probe.ptx.instructions import statements_in
from tui_probe.ptx.tree import Directive, Location
from tui_probe.trace.source_lines import SourceLine, lines_of_tables, named_files

if TYPE_CHECKING:
    from tui_probe.engine.kernel import Kernel


class SiteSources:
    """By line of ``pruned.ptx``: what ``.loc`` directives tell, or without any the line tables of the ``image``."""

    def __init__(self, kernel: Kernel, image: bytes) -> None:
        self._kernel = kernel
        self._image = image

    def of(self, line: int) -> SourceLine | None:
        """The source of a line that has an instruction, None if it is not known."""
        starts, sources = self._directives
        if not starts:
            return self._tables.get(line)
        place = bisect_right(starts, line) - 1
        return sources[place] if place >= 0 else None

    def following(self, line: int) -> SourceLine | None:
        """The source of the first line from this one on whose source is known."""
        starts, sources = self._directives
        if not starts:
            place = bisect_right(self._known, line - 1)
            return self._tables[self._known[place]] if place < len(self._known) else None
        later = range(max(bisect_right(starts, line) - 1, 0), len(starts))
        return next((sources[place] for place in later if sources[place] is not None), None)

    @cached_property
    def _directives(self) -> tuple[list[int], list[SourceLine | None]]:
        """The lines of ``.loc`` directives that text follows, and what they name; no lines if none names any."""
        statements = statements_in(self._kernel.entry.body or ())
        found = [node for node in statements if isinstance(node, Location)]
        kept = [one for one, other in pairwise(found) if other.span.line > one.span.line + 1] + found[-1:]
        directives = (item for item in self._kernel.module.items if isinstance(item, Directive))
        files = named_files("\n".join(item.text for item in directives if item.name == "file")) if kept else {}
        sources = [SourceLine(files[one.file], one.line) if one.line and files.get(one.file) else None for one in kept]
        shift = self._shift
        return ([one.span.line + shift for one in kept], sources) if any(sources) else ([], [])

    @cached_property
    def _tables(self) -> dict[int, SourceLine]:
        if not self._image.startswith(elf.MAGIC):
            return {}
        try:
            return lines_of_tables(self._image, self._kernel.entry, self._shift)
        except ImageError:
            return {}

    @cached_property
    def _known(self) -> list[int]:
        return sorted(self._tables)

    @property
    def _shift(self) -> int:
        """Lines from the place of the kernel in its module to that in the pruned text."""
        return self._kernel.first_line - self._kernel.entry.span.line
