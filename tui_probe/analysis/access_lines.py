"""The instructions of a kernel that access global memory, by line of ``pruned.ptx``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.analysis.known_sites import sites_of

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.ptx.access import Kind
    from tui_probe.trace.source_lines import SourceLine


@dataclass(frozen=True, slots=True)
class AccessLine:
    """An instruction of ``pruned.ptx``: its ``opcode`` with modifiers, and the bytes of one thread's access.

    ``spaces`` are the state spaces that it names. Of machine code ``line`` is an ``Offset``.
    """

    line: int
    opcode: str
    kind: Kind
    bytes: int | None
    source: SourceLine | None
    spaces: frozenset[str] = frozenset()


def access_lines(folder: Path) -> dict[int, AccessLine]:
    """The accesses that a probe was at by line of ``pruned.ptx``; of several on one line the first. Empty if none is
    known.
    """
    found: dict[int, AccessLine] = {}
    for one in sites_of(folder).instructions():
        if one.access is not None:
            spaces = frozenset(one.space.split("."))
            found.setdefault(one.line, AccessLine(one.line, one.opcode, one.access, one.bytes, one.source, spaces))
    return found
