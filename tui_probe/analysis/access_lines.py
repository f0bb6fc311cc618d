"""The instructions of a kernel that access global memory, by line of ``pruned.ptx``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.errors import PtxError
from tui_probe.ptx.access import access_bytes, access_kind
from tui_probe.ptx.instructions import instructions_in
from tui_probe.ptx.parser import parse
from tui_probe.trace.source_lines import SourceLine, SourceLines

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.ptx.access import Kind


@dataclass(frozen=True, slots=True)
class AccessLine:
    """An instruction of ``pruned.ptx``: its ``opcode`` with modifiers, and the bytes of one thread's access."""

    line: int
    opcode: str
    kind: Kind
    bytes: int | None
    source: SourceLine | None


def access_lines(folder: Path) -> dict[int, AccessLine]:
    """The accesses of a kernel by line of ``pruned.ptx``; of several on one line the first. Empty without that file."""
    try:
        entries = parse((folder / "pruned.ptx").read_text("utf-8", "replace")).entries()
        body = list(instructions_in(entries[0].body or [])) if entries else []
    except (OSError, PtxError):
        return {}
    sources = SourceLines.of(folder)
    found: dict[int, AccessLine] = {}
    for one in body:
        kind = access_kind(one)
        if kind is not None:
            line = one.span.line
            name = ".".join((one.opcode, *one.modifiers))
            found.setdefault(line, AccessLine(line, name, kind, access_bytes(one), sources.ptx_line(line)))
    return found
