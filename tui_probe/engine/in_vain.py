"""What is remarked of a kernel that has none of the instructions or lines that a probe is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.engine.model import LOOP
from tui_probe.reasons import Reason, because

if TYPE_CHECKING:
    from tui_probe.engine.model import Probe

_NAMED: Final = 4
"""Positions that are named; of more than one beyond that the number is told."""


def is_for_instructions(probe: Probe) -> bool:
    """Whether a probe is for something that a kernel may lack. One without a loop is nothing to remark on."""
    positions = (position for point in probe.points for position in point.positions)
    return any(not position.is_kernel and position.opcode != LOOP for position in positions)


def in_vain(probe: Probe) -> Reason:
    """That nothing was matched, and what was looked for."""
    positions = (position for point in probe.points for position in point.positions if not position.is_kernel)
    names = list(dict.fromkeys(map(str, positions)))
    if len(names) > _NAMED + 1:
        names = [*names[:_NAMED], f"{len(names) - _NAMED} others"]
    named = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return because("matched-nothing", probe=probe.name, positions=named)
