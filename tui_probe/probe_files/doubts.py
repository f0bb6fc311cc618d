"""Positions that no kernel is likely to have: misspelt, as far as the instructions of PTX are known here."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from tui_probe.near import meant
from tui_probe.ptx.opcodes import OPCODES, SPACES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.engine.model import Position, Probe


def doubts(probe: Probe) -> list[str]:
    """What is doubtful about the positions of a probe, each said once. A newer PTX may have what is doubted."""
    positions = (position for point in probe.points for position in point.positions)
    return list(dict.fromkeys(words for position in positions for words in _doubts(position)))


def _doubts(position: Position) -> Iterator[str]:
    if position.is_kernel or position.is_block or position.is_source:
        return
    if position.opcode not in OPCODES:
        near = meant(position.opcode, OPCODES) or meant(position.opcode.lower(), OPCODES)
        yield f"{position}: no instruction of PTX is known as {position.opcode}{near or '; lines are FILE:FIRST-LAST'}"
        return
    for modifier in (*position.modifiers, *position.unwanted):
        near_spaces = get_close_matches(modifier.lower(), SPACES, 1, 0.8)
        if near_spaces and modifier.partition("::")[0] not in SPACES:
            yield f"{position}: no instruction of PTX is known to be .{modifier}: did you mean {near_spaces[0]}?"
