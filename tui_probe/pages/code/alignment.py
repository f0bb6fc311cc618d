"""Alignment of code before and after probing, line by line: PTX by marks of inserted lines, SASS by PTX lines.

For probed PTX the alignment is exact: the engine ends every line that it inserts with ``// tui-probe: NAME``, and one
that replaces another quotes that one. For anything else lines are matched by what they say but for the
numbers of registers.

In SASS, instructions that came from lines of the probe are added ones, no matter what they look like. The one
instruction that does what a line of PTX says is next to the one that does so in the other code. What is left in between
is matched by what it says. The assembler moves instructions; of those that it moved past each other some are reported
as removed and added. For grafted code the alignment is exact: the graft says where its code is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.ptx.tree import INSERTED_MARK, REPLACED_MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tui_probe.pages.code.sass_text import SassCode
    from tui_probe.trace.kernel_files import Graft

LineChange = Literal["same", "renamed", "added", "removed", "changed"]
"""``renamed``: the same but for the numbers of registers, addresses and constants."""
MAX_LINES: Final = 40_000
"""Lines of both texts together beyond which lines are not matched by their text."""
PARAMETER: Final = "parameter"
"""Owner of the lines that declare the parameters of the probed kernel."""
_LOOKAHEAD: Final = 64
"""Lines of the pruned text among which the one is looked for that a line of the probed text stands for."""
_MIN_EQUAL_WORDS: Final = 0.5
"""Part of the words of two lines that are equal if one instruction has other operands."""
_BRANCH_TARGET: Final = re.compile(r"\bBRA\b.*?(?:\((\.L_\w+)\)|(0x[0-9a-f]+))\s*$")
_PARAMETER_LINE: Final = re.compile(r"\s*\.param \.u(?:32|64) tp_\w+,?\s*")
_JUNK_LINES: Final = 2000
"""Lines of a text from which on those that it often repeats are no anchors: comparing them takes quadratic time."""
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
    """All lines of both texts, in order. ``is_exact``: marks say what was inserted. ``problem``: why none match."""

    pairs: list[LinePair] = field(default_factory=list)
    is_exact: bool = False
    problem: str = ""

    def count(self, change: LineChange) -> int:
        """Counts of lines that were added, removed, changed, or stayed."""
        return sum(pair.change == change for pair in self.pairs)


def align_probed(pruned: Sequence[str], probed: Sequence[str]) -> Alignment:
    """Pruned and probed PTX by the engine's marks, in time linear in the lines; without marks as ``align`` does."""
    if not any(INSERTED_MARK in line for line in probed):
        return align(pruned, probed, normalised_ptx)
    return Alignment(list(_MarkedWalk(pruned, probed).pairs()), is_exact=True)


class _MarkedWalk:
    """Walks through both texts at the same time."""

    def __init__(self, pruned: Sequence[str], probed: Sequence[str]) -> None:
        self._pruned = pruned
        self._probed = probed
        self._pruned_index = 0
        """Index of the first line of the pruned text that is not paired."""

    def pairs(self) -> Iterator[LinePair]:
        for right, line in enumerate(self._probed):
            _, mark, owner = line.rpartition(INSERTED_MARK)
            if REPLACED_MARK in line:
                yield from self._pair_replaced(right, line.partition(REPLACED_MARK)[2])
            elif mark and line.lstrip().startswith(INSERTED_MARK):
                yield self._pair_changed(right, "module variables")  # a declaration that was left out
            elif mark:
                yield LinePair(None, right, "added", owner)
            elif _PARAMETER_LINE.fullmatch(line):
                yield LinePair(None, right, "added", PARAMETER)
            else:
                yield from self._pair_original(right, line)
        yield from (LinePair(left, None, "removed") for left in range(self._pruned_index, len(self._pruned)))

    def _pair_changed(self, probed_index: int, owner: str = "") -> LinePair:
        if self._pruned_index >= len(self._pruned):
            return LinePair(None, probed_index, "added", owner)
        self._pruned_index += 1
        return LinePair(self._pruned_index - 1, probed_index, "changed", owner)

    def _pair_replaced(self, probed_index: int, quoted_line: str) -> Iterator[LinePair]:
        """Pair the line that is quoted, with what may have been left out before it."""
        lookahead = range(self._pruned_index, min(self._pruned_index + _LOOKAHEAD, len(self._pruned)))
        match = next((left for left in lookahead if quoted_line in " ".join(self._pruned[left].split())), None)
        if match is None:
            yield LinePair(None, probed_index, "added", "module variables")
            return
        yield from (LinePair(left, None, "removed") for left in range(self._pruned_index, match))
        self._pruned_index = match
        yield self._pair_changed(probed_index, "module variables")

    def _pair_original(self, probed_index: int, line: str) -> Iterator[LinePair]:
        """Pair a line that is not marked: the next one of the pruned text, but for a comma or a line break."""
        pruned_index = self._pruned_index
        if pruned_index < len(self._pruned) and self._pruned[pruned_index] == line:
            self._pruned_index += 1
            yield LinePair(pruned_index, probed_index, "same")
            return
        lookahead = range(pruned_index, min(pruned_index + _LOOKAHEAD, len(self._pruned)))
        match = next((i for i in lookahead if self._pruned[i] == line or f"{self._pruned[i]}," == line), None)
        if match is None:
            next_probed_lines = self._probed[probed_index + 1 : probed_index + _LOOKAHEAD]
            is_inserted = pruned_index < len(self._pruned) and self._pruned[pruned_index] in next_probed_lines
            yield LinePair(None, probed_index, "added") if is_inserted else self._pair_changed(probed_index)
            return
        yield from (LinePair(i, None, "removed") for i in range(pruned_index, match))
        self._pruned_index = match + 1
        yield LinePair(match, probed_index, "same" if self._pruned[match] == line else "changed", "")


def normalised_ptx(line: str) -> str:
    """Return a line of PTX without the numbers of its registers, and with single blanks."""
    return " ".join(_REGISTER.sub(r"%\1", line).split())


def normalised_sass(line: str) -> str:
    """Return a line of machine code without the numbers of its registers, addresses and constants."""
    return " ".join(_SASS.sub(lambda match: match[1] or "#", line).split())


def align(left: Sequence[str], right: Sequence[str], normalise: Callable[[str], str]) -> Alignment:
    """Lines that say the same once ``normalise``. Beyond ``MAX_LINES`` only what both begin and end with."""
    left_keys, right_keys = [normalise(line) for line in left], [normalise(line) for line in right]
    start = _common_length(zip(left_keys, right_keys, strict=False))
    end = _common_length(zip(reversed(left_keys[start:]), reversed(right_keys[start:]), strict=False))
    middle_keys = left_keys[start : len(left_keys) - end], right_keys[start : len(right_keys) - end]
    alignment = Alignment([LinePair(i, i, _line_change(left[i], right[i])) for i in range(start)])
    if sum(map(len, middle_keys)) > MAX_LINES:
        alignment.problem = f"more than {MAX_LINES} lines differ, so lines are not matched"
        alignment.pairs += [LinePair(start + i, None, "removed") for i in range(len(middle_keys[0]))]
        alignment.pairs += [LinePair(None, start + i, "added") for i in range(len(middle_keys[1]))]
    else:
        alignment.pairs += _pair_similar(left, right, middle_keys, start)
    for i in range(end, 0, -1):
        a, b = len(left) - i, len(right) - i
        alignment.pairs.append(LinePair(a, b, _line_change(left[a], right[b])))
    return alignment


def _common_length(pairs: Iterator[tuple[str, str]]) -> int:
    count = 0
    for left, right in pairs:
        if left != right:
            break
        count += 1
    return count


def _line_change(left: str, right: str) -> LineChange:
    return "same" if left == right else "renamed"


def _pair_similar(
    left: Sequence[str], right: Sequence[str], middle: tuple[list[str], list[str]], start: int
) -> Iterator[LinePair]:
    """Pair the lines from ``start`` on whose normalised texts are ``middle``; ``left`` and ``right`` are as written."""
    matcher = SequenceMatcher(None, *middle, autojunk=len(middle[1]) > _JUNK_LINES)
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag == "equal":
            for i, j in zip(range(start + a, start + a_end), range(start + b, start + b_end), strict=True):
                yield LinePair(i, j, _line_change(left[i], right[j]))
            continue
        while a < a_end and b < b_end and _have_same_opcode(middle[0][a], middle[1][b]):
            yield LinePair(start + a, start + b, "changed")
            a, b = a + 1, b + 1
        yield from (LinePair(start + i, None, "removed") for i in range(a, a_end))
        yield from (LinePair(None, start + i, "added") for i in range(b, b_end))


def _have_same_opcode(left: str, right: str) -> bool:
    """Return whether two lines begin with the same word: one instruction with other operands."""
    left_words, right_words = left.split(" "), right.split(" ")
    if left_words[0] != right_words[0]:
        return False
    equal_words = sum(left_word == right_word for left_word, right_word in zip(left_words, right_words, strict=False))
    return equal_words >= _MIN_EQUAL_WORDS * max(len(left_words), len(right_words))


def align_sass(
    left: Sequence[str],
    right: Sequence[str],
    ptx_lines: tuple[Sequence[int | None], Sequence[int | None]],
    owners: Sequence[str | None],
) -> Alignment:
    """Lines of ``SassCode`` paired. ``ptx_lines`` is what :func:`doing` gives of each code, in lines of pruned.ptx.

    ``owners`` has the probe of each line of ``right`` that came from an inserted line of PTX, None of the others.
    """
    alignment = Alignment()
    anchors = [(-1, -1), *_anchors(left, right, ptx_lines), (len(left), len(right))]
    for (a, b), (a_end, b_end) in pairwise(anchors):
        if a >= 0:
            alignment.pairs.append(_instruction_pair(left, right, a, b))
        unowned = [i for i in range(b + 1, b_end) if owners[i] is None]
        part = align(left[a + 1 : a_end], [right[i] for i in unowned], normalised_sass)
        alignment.problem = alignment.problem or part.problem
        alignment.pairs += _with_inserted(part, a + 1, unowned, range(b + 1, b_end), owners)
    return alignment


def with_labels(owners: Sequence[str | None], code: SassCode) -> list[str | None]:
    """The ``owners`` of the lines of a code, labels included: one between instructions of a probe is of that, too."""
    extended = list(owners)
    instructions = [place for place, address in enumerate(code.addresses) if address is not None]
    for previous, next_place in pairwise(instructions):
        if owners[previous] == owners[next_place]:
            extended[previous + 1 : next_place] = [owners[previous]] * (next_place - previous - 1)
    return extended


def _instruction_pair(left: Sequence[str], right: Sequence[str], a: int, b: int) -> LinePair:
    if left[a] == right[b]:
        return LinePair(a, b, "same")
    return LinePair(a, b, "renamed" if normalised_sass(left[a]) == normalised_sass(right[b]) else "changed")


def _anchors(
    left: Sequence[str], right: Sequence[str], ptx_lines: tuple[Sequence[int | None], Sequence[int | None]]
) -> list[tuple[int, int]]:
    """Instructions that do the same line of PTX: the most of them that are in the same order in both codes."""
    places = {line: place for place, line in enumerate(ptx_lines[1]) if line is not None}
    pairs = [
        (a, places[line])
        for a, line in enumerate(ptx_lines[0])
        if line in places and _opcode(left[a]) == _opcode(right[places[line]])
    ]
    return _longest_rising_part(pairs)


def _opcode(text: str) -> str:
    word = next((word for word in text.split() if not word.startswith("@")), "")
    return word.partition(".")[0]


def _longest_rising_part(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of ``pairs``, whose first numbers rise, in which the second ones do, too: patience sorting."""
    least_ends: list[int] = []
    """The least second number with which a rising part of each length may end, by length - 1."""
    end_positions: list[int] = []
    """The positions in ``pairs`` of these ends."""
    predecessors: list[int] = []
    """The position of the pair before each pair in the longest part that it ends; -1 for none."""
    for position, (_, right) in enumerate(pairs):
        length = bisect_left(least_ends, right)
        predecessors.append(end_positions[length - 1] if length else -1)
        least_ends[length : length + 1] = [right]
        end_positions[length : length + 1] = [position]
    rising: list[tuple[int, int]] = []
    position = end_positions[-1] if end_positions else -1
    while position >= 0:
        rising.append(pairs[position])
        position = predecessors[position]
    return rising[::-1]


def _with_inserted(
    part: Alignment, start: int, unowned: Sequence[int], lines: range, owners: Sequence[str | None]
) -> Iterator[LinePair]:
    """Yield the pairs of a part, numbered as in both codes, and between them the lines that the probe inserted.

    ``lines`` are those of the part in the right code, ``unowned`` the ones among them that ``part`` pairs.
    """
    inserted_indices = iter([i for i in lines if owners[i] is not None])
    inserted = next(inserted_indices, None)
    for pair in part.pairs:
        right = None if pair.right is None else unowned[pair.right]
        while right is not None and inserted is not None and inserted < right:
            yield LinePair(None, inserted, "added", owners[inserted] or "")
            inserted = next(inserted_indices, None)
        yield LinePair(None if pair.left is None else start + pair.left, right, pair.change, pair.owner)
    while inserted is not None:
        yield LinePair(None, inserted, "added", owners[inserted] or "")
        inserted = next(inserted_indices, None)


def align_graft(pruned: SassCode, probed: SassCode, graft: Graft, owners: Sequence[str | None]) -> Alignment:
    """Pair the lines of SASS before and after code was grafted into it: exact, by the offsets that were replaced.

    ``owners`` has the probe of each added line of ``probed``, None of others.
    """
    return Alignment(list(_GraftWalk(pruned, probed, graft, owners).pairs()), is_exact=True)


class _GraftWalk:
    """Walks through both codes at the same time, address by address.

    Nothing of the original moved, so an instruction is next to the one at the same address. Below a replaced
    instruction comes the added code that the branch in its place leads to.
    """

    def __init__(self, pruned: SassCode, probed: SassCode, graft: Graft, owners: Sequence[str | None]) -> None:
        self._pruned, self._probed, self._graft, self._owners = pruned, probed, graft, owners
        self._places = _place_by_address(probed)
        self._added_ranges = self._added_parts()

    def pairs(self) -> Iterator[LinePair]:
        left = right = 0
        end = next((i for i, owner in enumerate(self._owners) if owner is not None), len(self._owners))
        for address, place in _place_by_address(self._pruned).items():
            probed_place = self._places.get(address)
            stop = end if probed_place is None else probed_place
            yield from self._pair_labels(left, place, right, stop)
            left, right = place + 1, max(right, stop)
            if probed_place is None:
                yield LinePair(place, None, "removed")
                continue
            right = probed_place + 1
            yield self._pair_instructions(place, probed_place, address)
            if address in self._graft.replaced_offsets:
                yield from self._pair_branch_target(probed_place)
        yield from self._pair_labels(left, len(self._pruned.lines), right, end)
        for part in self._added_ranges.values():  # what no replaced instruction leads to
            yield from self._pair_added(part)

    def _pair_instructions(self, left: int, right: int, address: int) -> LinePair:
        pruned_line, probed_line = self._pruned.lines[left], self._probed.lines[right]
        if address in self._graft.replaced_offsets:
            return LinePair(left, right, "changed", next((owner for owner in self._owners if owner), ""))
        if pruned_line == probed_line:
            return LinePair(left, right, "same")
        return LinePair(
            left, right, "renamed" if normalised_sass(pruned_line) == normalised_sass(probed_line) else "changed"
        )

    def _pair_labels(self, left: int, left_end: int, right: int, right_end: int) -> Iterator[LinePair]:
        """Labels before an instruction; nvdisasm numbers them anew, and one that only one code has is separate."""
        while left < left_end and right < right_end:
            yield LinePair(left, right, _line_change(self._pruned.lines[left], self._probed.lines[right]))
            left, right = left + 1, right + 1
        yield from (LinePair(i, None, "removed") for i in range(left, left_end))
        yield from (LinePair(None, i, "added", self._owners[i] or "") for i in range(right, right_end))

    def _pair_branch_target(self, branch: int) -> Iterator[LinePair]:
        target = self._branch_target(self._probed.lines[branch])
        if target is not None:
            yield from self._pair_added(self._added_ranges.pop(target, range(0)))

    def _pair_added(self, part: range) -> Iterator[LinePair]:
        return (LinePair(None, i, "added", self._owners[i] or "") for i in part)

    def _added_parts(self) -> dict[int, range]:
        """The lines of the added code by the address that a branch leads to; what is before the first is its own."""
        added_places = [i for i, owner in enumerate(self._owners) if owner is not None]
        if not added_places:
            return {}
        branches = [self._places[address] for address in self._graft.replaced_offsets if address in self._places]
        targets = {
            self._graft.appended_offset,
            *filter(None, map(self._branch_target, (self._probed.lines[i] for i in branches))),
        }
        part_starts = sorted(
            (self._first_place(at), at) for at in targets if at in self._places and self._places[at] in added_places
        )
        part_ends = [*(first for first, _ in part_starts[1:]), len(self._owners)]
        return {at: range(first, end) for (first, at), end in zip(part_starts, part_ends, strict=True)}

    def _first_place(self, address: int) -> int:
        """Return the place of an instruction, of the labels before it if there are any."""
        place = self._places[address]
        while place and self._probed.addresses[place - 1] is None and self._owners[place - 1] is not None:
            place -= 1
        return place

    def _branch_target(self, text: str) -> int | None:
        """Return the address that a branch leads to."""
        match = _BRANCH_TARGET.search(text)
        if match is None:
            return None
        if match[2]:
            return int(match[2], 16)
        label = f"{match[1]}:"
        label_place = self._probed.lines.index(label) if label in self._probed.lines else len(self._probed.lines)
        return next((address for address in self._probed.addresses[label_place:] if address is not None), None)


def _place_by_address(code: SassCode) -> dict[int, int]:
    """Return the place of the instruction at each address, in order."""
    return {address: place for place, address in enumerate(code.addresses) if address is not None}
