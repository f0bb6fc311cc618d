"""``sites.json``: what the engine knew of the sites of a probe in a kernel, so that no reader parses PTX again for it.

:mod:`tui_probe.trace.sites` reads it and says what is in it. It is written as text, site by site, from parts that are
made once for each kind of instruction, while the assembler works: without one the program waits for it.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tui_probe.engine.site_sources import SiteSources
from tui_probe.ptx.access import access_bytes
from tui_probe.ptx.facts import facts_of
from tui_probe.ptx.printer import MADE_UP
from tui_probe.ptx.tree import Instruction
from tui_probe.trace.sites import FORMAT, MOST, PTX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.engine.kernel import Kernel
    from tui_probe.engine.site_notes import Site, SiteNotes

_KINDS_KEPT: Final = 4096


def site_file(probe: str, kernel: Kernel, notes: SiteNotes, image: bytes) -> str:
    """The text of the file. ``image`` is what the kernel came from, which may tell its source lines."""
    writer = _Writer(kernel, image)
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
        f'{{"version": {FORMAT},\n"files": {json.dumps(list(writer.sources.files))},\n'
        f'"probes": [{{"probe": {json.dumps(probe)}, "way": "{PTX}",\n"sites": {_listed(sites)},\n'
        f'"maps": {maps},\n"unchecked": {_listed(unchecked)}}}]}}\n'
    )


def _listed(items: Iterable[str]) -> str:
    return "[" + ",\n".join(items) + "]"


class _Writer:
    """The text of single sites."""

    def __init__(self, kernel: Kernel, image: bytes) -> None:
        self.sources = SiteSources(kernel, image)
        self._source_of = self.sources.of
        self._line_of = kernel.line_of
        self._named_space = kernel.named_space

    def block(self, site: Site, *, whole: bool) -> str:
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
        told = _told(at, points, opcode, one.modifiers, copied, self._named_space(one))
        if source := self._source_of(line):
            return f'{{"line": {line}, {told}, "source": {source}{rest}}}'
        return f'{{"line": {line}, {told}{rest}}}'


@lru_cache(maxsize=_KINDS_KEPT)
def _told(
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
        "bytes": size if size is not None and 0 <= size < MOST else None,
    }
    return json.dumps({name: value for name, value in told.items() if value is not None})[1:-1]
