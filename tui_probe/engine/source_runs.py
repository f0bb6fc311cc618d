"""Lines of source as a position: the instructions that came from them, in runs that are entered and left as one.

What a call in these lines was inlined to came from them, too: a warp that goes through them goes through that.

A run is a longest sequence of such instructions within a basic block: it is entered at its first and left behind its
last one, whatever branches do. A branch at its end stays outside, since nothing runs behind it. A line whose code the
compiler put in several places has several runs; a snippet that adds up what it measures has the sum over all of them.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from tui_probe.engine.site_sources import SiteSources
from tui_probe.ptx.basic_blocks import basic_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.engine.kernel import Kernel
    from tui_probe.engine.model import SourceRange
    from tui_probe.ptx.tree import Function, Instruction

_LEAVE: Final = frozenset({"bra", "brx", "ret", "exit", "trap", "call"})


def source_runs(kernel: Kernel, function: Function, wanted: SourceRange) -> Iterator[list[Instruction]]:
    """The runs of a kernel or of a function of it, in its order; none where nothing tells its lines."""
    sources = SiteSources(kernel, kernel.image)
    for block in basic_blocks(function):
        straight = block[:-1] if block and block[-1].opcode in _LEAVE else block
        for is_of, run in groupby(straight, key=lambda one: _is_of(sources, kernel.line_of(one), wanted)):
            if is_of:
                yield list(run)


def _is_of(sources: SiteSources, line: int, wanted: SourceRange) -> bool:
    return any(wanted.holds(place.file, place.line) for place in sources.places(line))
