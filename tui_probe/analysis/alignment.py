"""Two texts line by line: which lines of the second stand for which of the first.

For probed PTX the alignment is exact: the engine ends every line that it inserts with ``// tui-probe: NAME``, and one
that stands in the place of another quotes that one. For anything else lines are matched by what they say but for the
numbers of registers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.engine.edits import MARK, REPLACED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Change = Literal["same", "renamed", "added", "removed", "changed"]
"""``renamed``: the same but for the numbers of registers, addresses and constants."""
MOST_LINES: Final = 40_000
"""Of both texts together, beyond which lines are not matched by what they say."""
PARAMETER: Final = "parameter"
_AHEAD: Final = 64
_ALIKE: Final = 0.5
_PARAMETER: Final = re.compile(r"\s*\.param \.u(?:32|64) tp_\w+,?\s*")


@dataclass(frozen=True, slots=True)
class Pair:
    """A line of the first text and one of the second, as indices; None where there is none.

    ``owner`` is the probe that an added or changed line belongs to, "" where no mark says so.
    """

    left: int | None
    right: int | None
    change: Change
    owner: str = ""


@dataclass(slots=True)
class Alignment:
    """All lines of both texts, in order. ``exact`` if marks said what was inserted; ``problem`` if nothing matched."""

    pairs: list[Pair] = field(default_factory=list)
    exact: bool = False
    problem: str = ""

    def count(self, change: Change) -> int:
        """How many lines were added, removed, changed, or stayed."""
        return sum(pair.change == change for pair in self.pairs)


def align_probed(pruned: Sequence[str], probed: Sequence[str]) -> Alignment:
    """Pruned and probed PTX by the engine's marks, in time linear in the lines; without marks as ``align`` does."""
    if not any(MARK in line for line in probed):
        return align(pruned, probed, normalised_ptx)
    return Alignment(list(_Marked(pruned, probed).pairs()), exact=True)


class _Marked:
    """Walks through both texts at once."""

    def __init__(self, pruned: Sequence[str], probed: Sequence[str]) -> None:
        self._pruned = pruned
        self._probed = probed
        self._left = 0

    def pairs(self) -> Iterator[Pair]:
        for right, line in enumerate(self._probed):
            _, mark, owner = line.rpartition(MARK)
            if REPLACED in line:
                yield from self._replaced(right, line.partition(REPLACED)[2])
            elif mark and line.lstrip().startswith(MARK):
                yield self._changed(right, "module variables")  # a declaration that was left out
            elif mark:
                yield Pair(None, right, "added", owner)
            elif _PARAMETER.fullmatch(line):
                yield Pair(None, right, "added", PARAMETER)
            else:
                yield from self._original(right, line)
        yield from (Pair(left, None, "removed") for left in range(self._left, len(self._pruned)))

    def _changed(self, right: int, owner: str = "") -> Pair:
        if self._left >= len(self._pruned):
            return Pair(None, right, "added", owner)
        self._left += 1
        return Pair(self._left - 1, right, "changed", owner)

    def _replaced(self, right: int, quoted: str) -> Iterator[Pair]:
        """The line that is quoted, with what may have been left out before it."""
        near = range(self._left, min(self._left + _AHEAD, len(self._pruned)))
        found = next((left for left in near if quoted in " ".join(self._pruned[left].split())), None)
        if found is None:
            yield Pair(None, right, "added", "module variables")
            return
        yield from (Pair(left, None, "removed") for left in range(self._left, found))
        self._left = found
        yield self._changed(right, "module variables")

    def _original(self, right: int, line: str) -> Iterator[Pair]:
        """A line that is not marked: the next one of the pruned text, but for a comma or a line break."""
        left = self._left
        if left < len(self._pruned) and self._pruned[left] == line:
            self._left += 1
            yield Pair(left, right, "same")
            return
        near = range(left, min(left + _AHEAD, len(self._pruned)))
        found = next((i for i in near if self._pruned[i] == line or f"{self._pruned[i]}," == line), None)
        if found is None:
            comes = left < len(self._pruned) and self._pruned[left] in self._probed[right + 1 : right + _AHEAD]
            yield Pair(None, right, "added") if comes else self._changed(right)
            return
        yield from (Pair(i, None, "removed") for i in range(left, found))
        self._left = found + 1
        yield Pair(found, right, "same" if self._pruned[found] == line else "changed", "")


_REGISTER: Final = re.compile(r"%([a-z_]+)\d+")
_SASS: Final = re.compile(r"\b(UR|UP|R|P|B|SB)\d+\b|0x[0-9a-f]+|/\*[0-9a-f]+\*/|\.L_x_\d+")


def normalised_ptx(line: str) -> str:
    """A line of PTX without the numbers of its registers, and with single blanks."""
    return " ".join(_REGISTER.sub(r"%\1", line).split())


def normalised_sass(line: str) -> str:
    """A line of machine code without the numbers of its registers, addresses and constants."""
    return " ".join(_SASS.sub(lambda match: match[1] or "#", line).split())


def align(left: Sequence[str], right: Sequence[str], normalised: Callable[[str], str]) -> Alignment:
    """Lines that say the same once ``normalised``. Beyond ``MOST_LINES`` only what both begin and end with."""
    one, other = [normalised(line) for line in left], [normalised(line) for line in right]
    start = _common(zip(one, other, strict=False))
    end = _common(zip(reversed(one[start:]), reversed(other[start:]), strict=False))
    middle = one[start : len(one) - end], other[start : len(other) - end]
    alignment = Alignment([Pair(i, i, _said(left[i], right[i])) for i in range(start)])
    if sum(map(len, middle)) > MOST_LINES:
        alignment.problem = f"more than {MOST_LINES} lines differ: they are not matched"
        alignment.pairs += [Pair(start + i, None, "removed") for i in range(len(middle[0]))]
        alignment.pairs += [Pair(None, start + i, "added") for i in range(len(middle[1]))]
    else:
        alignment.pairs += _matched(left, right, middle, start)
    for i in range(end, 0, -1):
        a, b = len(left) - i, len(right) - i
        alignment.pairs.append(Pair(a, b, _said(left[a], right[b])))
    return alignment


def _common(pairs: Iterator[tuple[str, str]]) -> int:
    count = 0
    for one, other in pairs:
        if one != other:
            break
        count += 1
    return count


def _said(one: str, other: str) -> Change:
    return "same" if one == other else "renamed"


def _matched(
    left: Sequence[str], right: Sequence[str], middle: tuple[list[str], list[str]], start: int
) -> Iterator[Pair]:
    matcher = SequenceMatcher(None, *middle, autojunk=len(middle[1]) > 2000)
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag == "equal":
            for i in range(a_end - a):
                x, y = start + a + i, start + b + i
                yield Pair(x, y, _said(left[x], right[y]))
            continue
        both = 0
        while a + both < a_end and b + both < b_end and _alike(middle[0][a + both], middle[1][b + both]):
            yield Pair(start + a + both, start + b + both, "changed")
            both += 1
        yield from (Pair(start + i, None, "removed") for i in range(a + both, a_end))
        yield from (Pair(None, start + i, "added") for i in range(b + both, b_end))


def _alike(one: str, other: str) -> bool:
    """Whether two lines begin with the same word: one instruction with other operands."""
    first, second = one.split(" "), other.split(" ")
    if first[0] != second[0]:
        return False
    same = sum(a == b for a, b in zip(first, second, strict=False))
    return same >= _ALIKE * max(len(first), len(second))
