"""Alignment of two texts line by line, exact where the inserted lines are marked.

For probed PTX the alignment is exact: the engine ends every line that it inserts with ``// tui-probe: NAME``, and one
that replaces another quotes that one. For anything else lines are matched by what they say but for the
numbers of registers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.engine.kernel import INSERTED_MARK, REPLACED_MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LineChange = Literal["same", "renamed", "added", "removed", "changed"]
"""``renamed``: the same but for the numbers of registers, addresses and constants."""
MAX_LINES: Final = 40_000
"""Lines of both texts together beyond which lines are not matched by their text."""
PARAMETER: Final = "parameter"
_LOOKAHEAD: Final = 64
_SAME_START: Final = 0.5
_PARAMETER: Final = re.compile(r"\s*\.param \.u(?:32|64) tp_\w+,?\s*")
_REGISTER: Final = re.compile(r"%([a-z_]+)\d+")
_SASS: Final = re.compile(r"\b(UR|UP|R|P|B|SB)\d+\b|0x[0-9a-f]+|/\*[0-9a-f]+\*/|\.L_x_\d+")


@dataclass(frozen=True, slots=True)
class LinePair:
    """A line of the first text and one of the second, as indices; None where there is none.

    ``owner`` is the probe that an added or changed line belongs to, "" where no mark says so.
    """

    left: int | None
    right: int | None
    change: LineChange
    owner: str = ""


@dataclass(slots=True)
class Alignment:
    """All lines of both texts, in order. ``exact`` if marks said what was inserted; ``problem`` if nothing matched."""

    pairs: list[LinePair] = field(default_factory=list)
    exact: bool = False
    problem: str = ""

    def count(self, change: LineChange) -> int:
        """Counts of lines that were added, removed, changed, or stayed."""
        return sum(pair.change == change for pair in self.pairs)


def align_probed(pruned: Sequence[str], probed: Sequence[str]) -> Alignment:
    """Pruned and probed PTX by the engine's marks, in time linear in the lines; without marks as ``align`` does."""
    if not any(INSERTED_MARK in line for line in probed):
        return align(pruned, probed, normalised_ptx)
    return Alignment(list(_MarkedWalk(pruned, probed).pairs()), exact=True)


class _MarkedWalk:
    """Walks through both texts at the same time."""

    def __init__(self, pruned: Sequence[str], probed: Sequence[str]) -> None:
        self._pruned = pruned
        self._probed = probed
        self._left = 0

    def pairs(self) -> Iterator[LinePair]:
        for right, line in enumerate(self._probed):
            _, mark, owner = line.rpartition(INSERTED_MARK)
            if REPLACED_MARK in line:
                yield from self._replaced(right, line.partition(REPLACED_MARK)[2])
            elif mark and line.lstrip().startswith(INSERTED_MARK):
                yield self._changed(right, "module variables")  # a declaration that was left out
            elif mark:
                yield LinePair(None, right, "added", owner)
            elif _PARAMETER.fullmatch(line):
                yield LinePair(None, right, "added", PARAMETER)
            else:
                yield from self._original(right, line)
        yield from (LinePair(left, None, "removed") for left in range(self._left, len(self._pruned)))

    def _changed(self, right: int, owner: str = "") -> LinePair:
        if self._left >= len(self._pruned):
            return LinePair(None, right, "added", owner)
        self._left += 1
        return LinePair(self._left - 1, right, "changed", owner)

    def _replaced(self, right: int, quoted: str) -> Iterator[LinePair]:
        """The line that is quoted, with what may have been left out before it."""
        near = range(self._left, min(self._left + _LOOKAHEAD, len(self._pruned)))
        match = next((left for left in near if quoted in " ".join(self._pruned[left].split())), None)
        if match is None:
            yield LinePair(None, right, "added", "module variables")
            return
        yield from (LinePair(left, None, "removed") for left in range(self._left, match))
        self._left = match
        yield self._changed(right, "module variables")

    def _original(self, right: int, line: str) -> Iterator[LinePair]:
        """A line that is not marked: the next one of the pruned text, but for a comma or a line break."""
        left = self._left
        if left < len(self._pruned) and self._pruned[left] == line:
            self._left += 1
            yield LinePair(left, right, "same")
            return
        near = range(left, min(left + _LOOKAHEAD, len(self._pruned)))
        match = next((i for i in near if self._pruned[i] == line or f"{self._pruned[i]}," == line), None)
        if match is None:
            comes = left < len(self._pruned) and self._pruned[left] in self._probed[right + 1 : right + _LOOKAHEAD]
            yield LinePair(None, right, "added") if comes else self._changed(right)
            return
        yield from (LinePair(i, None, "removed") for i in range(left, match))
        self._left = match + 1
        yield LinePair(match, right, "same" if self._pruned[match] == line else "changed", "")


def normalised_ptx(line: str) -> str:
    """A line of PTX without the numbers of its registers, and with single blanks."""
    return " ".join(_REGISTER.sub(r"%\1", line).split())


def normalised_sass(line: str) -> str:
    """A line of machine code without the numbers of its registers, addresses and constants."""
    return " ".join(_SASS.sub(lambda match: match[1] or "#", line).split())


def align(left: Sequence[str], right: Sequence[str], normalised: Callable[[str], str]) -> Alignment:
    """Lines that say the same once ``normalised``. Beyond ``MAX_LINES`` only what both begin and end with."""
    one, other = [normalised(line) for line in left], [normalised(line) for line in right]
    start = _common(zip(one, other, strict=False))
    end = _common(zip(reversed(one[start:]), reversed(other[start:]), strict=False))
    middle = one[start : len(one) - end], other[start : len(other) - end]
    alignment = Alignment([LinePair(i, i, _kind_of_change(left[i], right[i])) for i in range(start)])
    if sum(map(len, middle)) > MAX_LINES:
        alignment.problem = f"more than {MAX_LINES} lines differ, so they are not matched"
        alignment.pairs += [LinePair(start + i, None, "removed") for i in range(len(middle[0]))]
        alignment.pairs += [LinePair(None, start + i, "added") for i in range(len(middle[1]))]
    else:
        alignment.pairs += _matched(left, right, middle, start)
    for i in range(end, 0, -1):
        a, b = len(left) - i, len(right) - i
        alignment.pairs.append(LinePair(a, b, _kind_of_change(left[a], right[b])))
    return alignment


def _common(pairs: Iterator[tuple[str, str]]) -> int:
    count = 0
    for first, second in pairs:
        if first != second:
            break
        count += 1
    return count


def _kind_of_change(one: str, other: str) -> LineChange:
    return "same" if one == other else "renamed"


def _matched(
    left: Sequence[str], right: Sequence[str], middle: tuple[list[str], list[str]], start: int
) -> Iterator[LinePair]:
    matcher = SequenceMatcher(None, *middle, autojunk=len(middle[1]) > 2000)
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag == "equal":
            for i in range(a_end - a):
                x, y = start + a + i, start + b + i
                yield LinePair(x, y, _kind_of_change(left[x], right[y]))
            continue
        both = 0
        while a + both < a_end and b + both < b_end and _have_same_opcode(middle[0][a + both], middle[1][b + both]):
            yield LinePair(start + a + both, start + b + both, "changed")
            both += 1
        yield from (LinePair(start + i, None, "removed") for i in range(a + both, a_end))
        yield from (LinePair(None, start + i, "added") for i in range(b + both, b_end))


def _have_same_opcode(one: str, other: str) -> bool:
    """Return whether two lines begin with the same word: one instruction with other operands."""
    first, second = one.split(" "), other.split(" ")
    if first[0] != second[0]:
        return False
    same = sum(a == b for a, b in zip(first, second, strict=False))
    return same >= _SAME_START * max(len(first), len(second))
