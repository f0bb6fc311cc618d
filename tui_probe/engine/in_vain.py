"""What is remarked of a kernel that has none of the instructions or lines that a probe is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.engine.model import LOOP
from tui_probe.engine.site_sources import SiteSources
from tui_probe.reasons import Reason, because

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.engine.kernel import Kernel
    from tui_probe.engine.model import Probe, SourceRange

_NAMED: Final = 4
"""Positions that are named; of more than one beyond that the number is told."""


def is_for_instructions(probe: Probe) -> bool:
    """Whether a probe is for something that a kernel may lack. One without a loop is nothing to remark on."""
    positions = (position for point in probe.points for position in point.positions)
    return any(not position.is_kernel and position.opcode != LOOP for position in positions)


def in_vain(probe: Probe, kernel: Kernel | None = None) -> Reason:
    """That nothing was matched, and what was looked for; of lines of source, what a ``kernel`` has in their place."""
    positions = [position for point in probe.points for position in point.positions if not position.is_kernel]
    names = list(dict.fromkeys(map(str, positions)))
    if len(names) > _NAMED + 1:
        names = [*names[:_NAMED], f"{len(names) - _NAMED} others"]
    named = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    instead = "" if kernel is None else _instead(kernel, [each.source for each in positions if each.source])
    return because("matched-nothing", probe=probe.name, positions=named + instead)


def _instead(kernel: Kernel, wanted: Sequence[SourceRange]) -> str:
    """Why a kernel has none of these lines; "" where it has others of these files."""
    files = SiteSources(kernel, kernel.image).all_files() if wanted else []
    if not wanted or any(each.is_of(file) for each in wanted for file in files):
        return ""
    if not files:
        return ": it tells no lines of source (compile with -lineinfo)"
    names = [file.rpartition("/")[2] for file in files]
    others = f" and {len(names) - _NAMED} others" if len(names) > _NAMED else ""
    return f": its code is of {', '.join(names[:_NAMED])}{others}"
