"""Whether what a probe saves is the same in all lanes of a warp, so that any of them may save it for the warp.

Told by what its snippets read: nothing of a lane's own, nothing of memory, and that at entries and exits alone, where
all lanes of a warp that come there have come the same way through the probe's code.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tui_probe.engine.model import Code, Save

if TYPE_CHECKING:
    from tui_probe.engine.model import Probe, Snippet

_OF_THE_WARP: Final = frozenset(
    {"%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi", "%smid", "%nsmid"}
    | {f"%{name}.{axis}" for name in ("ctaid", "nctaid", "ntid") for axis in "xyz"}
    | {"%gridid", "%warpid", "%nwarpid"}
)
_WORD: Final = re.compile(r"%[A-Za-z_$][\w$.]*")


def is_uniform(probe: Probe) -> bool:
    """Whether all values that a probe saves are those of the warp."""
    points = probe.points
    if not all(position.is_kernel for point in points for position in point.positions):
        return False
    return all(_is_uniform(probe, snippet) for point in points for snippet in (point.before, point.after) if snippet)


def _is_uniform(probe: Probe, snippet: Snippet) -> bool:
    if snippet.helpers:
        return False
    words: list[str] = []
    for statement in snippet.statements:
        if isinstance(statement, Code):
            if "[" in statement.text:
                return False
            words += _WORD.findall(statement.text)
        elif isinstance(statement, Save):
            words += [value for value in statement.values if value.startswith("%")]
    return all(word in probe.registers or word in _OF_THE_WARP for word in words)
