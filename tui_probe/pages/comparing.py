"""Two kernels, launches or traces become a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.pages.changes import Pair, changes
from tui_probe.pages.comparison import Comparison
from tui_probe.pages.comparison_sides import side_of, side_of_trace
from tui_probe.pages.comparison_tables import shape_words
from tui_probe.pages.matching import matched, matches
from tui_probe.probekit.kind import Source

if TYPE_CHECKING:
    from tui_probe.draw.view import Progress
    from tui_probe.pages.matching import Match
    from tui_probe.trace.model import Trace


def compare_sources(one: Source, other: Source, progress: Progress) -> Comparison:
    """Two kernels, or two launches."""
    found = matches(one, other)
    pairs = [
        _pair(match, _part(progress, place, len(found)), alone=len(found) == 1) for place, match in enumerate(found)
    ]
    return Comparison((side_of(one), side_of(other)), pairs, {"A": [], "B": []}, traces=False)


def compare_traces(one: Trace, other: Trace, progress: Progress) -> Comparison:
    """The kernels that both have, by name and then by grid and block, whatever their order."""
    kernels, before, after = matched(one, other)
    found = [match for whole in kernels for match in matches(whole.one, whole.other)]
    pairs = [_pair(match, _part(progress, place, len(found))) for place, match in enumerate(found)]
    alone = {"A": [Source(one, each) for each in before], "B": [Source(other, each) for each in after]}
    return Comparison((side_of_trace(one), side_of_trace(other)), pairs, alone, traces=True)


def _pair(match: Match, progress: Progress, *, alone: bool = False) -> Pair:
    kernel = match.one.kernel
    name = "" if alone else f"#{kernel.index} {kernel.demangled}{shape_words(match.grid, match.block)}"
    named = "" if alone else kernel.demangled
    problems: dict[str, None] = {}
    found = changes(match, progress, problems, named)
    return Pair(
        name,
        kernel.index,
        kernel.demangled,
        match.grid,
        match.block,
        found,
        match.launched_words,
        tuple(problems),
        match.different,
        (match.one, match.other),
    )


def _part(progress: Progress, place: int, count: int) -> Progress:
    return lambda share: progress((place + share) / count)
