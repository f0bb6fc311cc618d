"""The instructions of a kernel whose trace has no ``sites.json``, since an older version wrote it.

They are parsed from ``pruned.ptx``; there are none where that file is not there or damaged.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from tui_probe.errors import PtxError
from tui_probe.input_limits import PTX_TEXT
from tui_probe.ptx.basic_blocks import basic_blocks
from tui_probe.ptx.facts import facts_of
from tui_probe.ptx.instructions import instructions_in
from tui_probe.ptx.parser import parse
from tui_probe.ptx.value_types import ValueTypes
from tui_probe.trace.plain_file import read_within
from tui_probe.trace.sites import SiteInstruction
from tui_probe.trace.source_lines import SourceLines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.ptx.tree import Function, Instruction
    from tui_probe.trace.source_lines import SourceLine

_ELSEWHERE: Final = frozenset({"shared", "local", "param", "bulk", "async"})


class OlderSites:
    """What the PTX in a kernel's folder tells; nothing is read before it is asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def instructions(self) -> list[SiteInstruction]:
        """All of the kernel, in the order of the text."""
        return [self._told(one) for one in self._body]

    def blocks(self, lines: Sequence[int]) -> list[list[SiteInstruction]]:
        """Its basic blocks, if these are the lines on which they begin."""
        blocks = basic_blocks(self._entry) if self._entry and self._body else []
        if [block[0].span.line for block in blocks] != list(lines):
            return []
        return [list(map(self._told, block)) for block in blocks]

    def unchecked(self) -> list[SiteInstruction]:
        """The stores to global memory whose type does not tell whether they store numbers."""
        stores = [one for one in self._body if _stores_globally(one)]
        types = ValueTypes(self._entry) if stores and self._entry else None
        return [self._told(one) for one in stores if types and types.untold(one)]

    def ptx_line(self, line: int) -> SourceLine | None:
        """The source of any line."""
        return self._sources.ptx_line(line)

    def following(self, line: int) -> SourceLine | None:
        """The source of the first line from this one on whose source is known."""
        return self._sources.following(line)

    @cached_property
    def _sources(self) -> SourceLines:
        return SourceLines.of(self._folder)

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

    def _told(self, one: Instruction) -> SiteInstruction:
        facts, line = facts_of(one), one.span.line
        return SiteInstruction(line, **facts._asdict(), source=self.ptx_line(line))


def _stores_globally(one: Instruction) -> bool:
    spaces = {modifier.partition("::")[0] for modifier in one.modifiers}
    is_store = one.opcode == "st" or (one.opcode == "wmma" and "store" in spaces)
    return is_store and not spaces & _ELSEWHERE
