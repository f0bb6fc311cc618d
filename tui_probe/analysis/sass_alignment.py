"""Machine code of the pruned and the probed kernel side by side, by the lines of PTX that instructions came from.

Instructions that came from lines of the probe are added ones, whatever they look like. The one instruction that does
what a line of PTX says stands beside the one that does so in the other code. What is left in between is matched by
what it says. The assembler moves instructions; of those that it moved past each other some are told as removed and
added.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

from tui_probe.analysis.alignment import Alignment, Pair, align, normalised_sass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.analysis.sass import Code


def align_sass(
    left: Sequence[str],
    right: Sequence[str],
    acting: tuple[Sequence[int | None], Sequence[int | None]],
    owners: Sequence[str | None],
) -> Alignment:
    """Lines of ``Code`` paired. ``acting`` is what :func:`doing` gives of each code, in lines of pruned.ptx.

    ``owners`` has the probe of each line of ``right`` that came from an inserted line of PTX, None of the others.
    """
    alignment = Alignment()
    whole = [(-1, -1), *_anchors(left, right, acting), (len(left), len(right))]
    for (a, b), (a_end, b_end) in pairwise(whole):
        if a >= 0:
            alignment.pairs.append(_pair(left, right, a, b))
        kept = [i for i in range(b + 1, b_end) if owners[i] is None]
        part = align(left[a + 1 : a_end], [right[i] for i in kept], normalised_sass)
        alignment.problem = alignment.problem or part.problem
        alignment.pairs += _with_inserted(part, a + 1, kept, range(b + 1, b_end), owners)
    return alignment


def with_labels(owners: Sequence[str | None], code: Code) -> list[str | None]:
    """The ``owners`` of the lines of a code, labels included: one between instructions of a probe is of that, too."""
    found = list(owners)
    instructions = [place for place, address in enumerate(code.addresses) if address is not None]
    for before, after in pairwise(instructions):
        if owners[before] == owners[after]:
            found[before + 1 : after] = [owners[before]] * (after - before - 1)
    return found


def _pair(left: Sequence[str], right: Sequence[str], a: int, b: int) -> Pair:
    if left[a] == right[b]:
        return Pair(a, b, "same")
    return Pair(a, b, "renamed" if normalised_sass(left[a]) == normalised_sass(right[b]) else "changed")


def _anchors(
    left: Sequence[str], right: Sequence[str], acting: tuple[Sequence[int | None], Sequence[int | None]]
) -> list[tuple[int, int]]:
    """Instructions that do the same line of PTX: the most of them that stand in the same order in both codes."""
    places = {line: place for place, line in enumerate(acting[1]) if line is not None}
    pairs = [
        (a, places[line])
        for a, line in enumerate(acting[0])
        if line in places and _opcode(left[a]) == _opcode(right[places[line]])
    ]
    return _rising(pairs)


def _opcode(text: str) -> str:
    word = next((word for word in text.split() if not word.startswith("@")), "")
    return word.partition(".")[0]


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of ``pairs``, whose first numbers rise, in which the second ones rise, too."""
    ends: list[int] = []
    chosen: list[int] = []
    before: list[int] = []
    for place, (_, second) in enumerate(pairs):
        at = bisect_left(ends, second)
        before.append(chosen[at - 1] if at else -1)
        ends[at : at + 1] = [second]
        chosen[at : at + 1] = [place]
    found: list[tuple[int, int]] = []
    place = chosen[-1] if chosen else -1
    while place >= 0:
        found.append(pairs[place])
        place = before[place]
    return found[::-1]


def _with_inserted(
    part: Alignment, start: int, kept: Sequence[int], whole: range, owners: Sequence[str | None]
) -> Iterator[Pair]:
    """The pairs of a part, numbered as in the whole, and between them the lines that the probe inserted."""
    following = iter([i for i in whole if owners[i] is not None])
    inserted = next(following, None)
    for pair in part.pairs:
        right = None if pair.right is None else kept[pair.right]
        while right is not None and inserted is not None and inserted < right:
            yield Pair(None, inserted, "added", owners[inserted] or "")
            inserted = next(following, None)
        yield Pair(None if pair.left is None else start + pair.left, right, pair.change, pair.owner)
    while inserted is not None:
        yield Pair(None, inserted, "added", owners[inserted] or "")
        inserted = next(following, None)
