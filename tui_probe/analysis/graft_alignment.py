"""Machine code before and after code was grafted into it, side by side: exact, by the offsets that were replaced.

Nothing of the original moved, so an instruction stands beside the one at the same address. Below a replaced instruction
comes the added code that the branch in its place leads to.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tui_probe.analysis.alignment import Alignment, Pair, normalised_sass
from tui_probe.analysis.sass import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.analysis.sass import Code
    from tui_probe.trace.kernels import Graft

_TARGET: Final = re.compile(r"\bBRA\b.*?(?:\((\.L_\w+)\)|(0x[0-9a-f]+))\s*$")


def without_padding(probed: Code, pruned: Code, graft: Graft) -> Code:
    """The probed code without what filled the space between the end of the original and the code that was added."""
    end = max((at for at in pruned.addresses if at is not None), default=-1)
    kept = [i for i, at in enumerate(probed.addresses) if at is None or not end < at < graft.appended]
    lines = [probed.lines[i] for i in kept]
    return replace(
        probed,
        lines=lines,
        addresses=[probed.addresses[i] for i in kept],
        sources=[probed.sources[i] for i in kept],
        counts=count(lines),
    )


def added_lines(probed: Code, graft: Graft, owner: str) -> list[str | None]:
    """``owner`` for each line of the added code, the labels before its instructions included, None of others."""
    owners: list[str | None] = []
    following: int | None = None
    for address in reversed(probed.addresses):
        following = address if address is not None else following
        owners.append(owner if following is not None and following >= graft.appended else None)
    return owners[::-1]


def align_graft(pruned: Code, probed: Code, graft: Graft, owners: Sequence[str | None]) -> Alignment:
    """Lines of both codes paired. ``owners`` has the probe of each added line of ``probed``, None of others."""
    return Alignment(list(_Grafted(pruned, probed, graft, owners).pairs()), exact=True)


class _Grafted:
    def __init__(self, pruned: Code, probed: Code, graft: Graft, owners: Sequence[str | None]) -> None:
        self._pruned, self._probed, self._graft, self._owners = pruned, probed, graft, owners
        self._places = _places(probed)
        self._parts = self._added_parts()

    def pairs(self) -> Iterator[Pair]:
        left = right = 0
        end = next((i for i, own in enumerate(self._owners) if own is not None), len(self._owners))
        for address, place in _places(self._pruned).items():
            beside = self._places.get(address)
            stop = end if beside is None else beside
            yield from self._labels(left, place, right, stop)
            left, right = place + 1, max(right, stop)
            if beside is None:
                yield Pair(place, None, "removed")
                continue
            right = beside + 1
            yield self._pair(place, beside, address)
            if address in self._graft.replaced:
                yield from self._added_below(beside)
        yield from self._labels(left, len(self._pruned.lines), right, end)
        for part in self._parts.values():  # what no replaced instruction leads to
            yield from self._added(part)

    def _pair(self, left: int, right: int, address: int) -> Pair:
        before, after = self._pruned.lines[left], self._probed.lines[right]
        if address in self._graft.replaced:
            return Pair(left, right, "changed", next((own for own in self._owners if own), ""))
        if before == after:
            return Pair(left, right, "same")
        return Pair(left, right, "renamed" if normalised_sass(before) == normalised_sass(after) else "changed")

    def _labels(self, left: int, left_end: int, right: int, right_end: int) -> Iterator[Pair]:
        """Labels before an instruction; nvdisasm numbers them anew, and one that only one code has stands alone."""
        while left < left_end and right < right_end:
            alike = self._pruned.lines[left] == self._probed.lines[right]
            yield Pair(left, right, "same" if alike else "renamed")
            left, right = left + 1, right + 1
        yield from (Pair(i, None, "removed") for i in range(left, left_end))
        yield from (Pair(None, i, "added", self._owners[i] or "") for i in range(right, right_end))

    def _added_below(self, branch: int) -> Iterator[Pair]:
        target = self._target(self._probed.lines[branch])
        if target is not None:
            yield from self._added(self._parts.pop(target, range(0)))

    def _added(self, part: range) -> Iterator[Pair]:
        return (Pair(None, i, "added", self._owners[i] or "") for i in part)

    def _added_parts(self) -> dict[int, range]:
        """The lines of the added code by the address that a branch leads to; what is before the first is its own."""
        added = [i for i, own in enumerate(self._owners) if own is not None]
        if not added:
            return {}
        branches = [self._places[at] for at in self._graft.replaced if at in self._places]
        targets = {self._graft.appended, *filter(None, map(self._target, (self._probed.lines[i] for i in branches)))}
        starts = sorted((self._first_of(at), at) for at in targets if at in self._places and self._places[at] in added)
        ends = [*(first for first, _ in starts[1:]), len(self._owners)]
        return {at: range(first, end) for (first, at), end in zip(starts, ends, strict=True)}

    def _first_of(self, address: int) -> int:
        """The place of an instruction, of the labels before it if there are any."""
        place = self._places[address]
        while place and self._probed.addresses[place - 1] is None and self._owners[place - 1] is not None:
            place -= 1
        return place

    def _target(self, text: str) -> int | None:
        """The address that a branch leads to."""
        match = _TARGET.search(text)
        if match is None:
            return None
        if match[2]:
            return int(match[2], 16)
        label = f"{match[1]}:"
        at = self._probed.lines.index(label) if label in self._probed.lines else len(self._probed.lines)
        return next((address for address in self._probed.addresses[at:] if address is not None), None)


def _places(code: Code) -> dict[int, int]:
    """The place of the instruction at each address, in order."""
    return {address: place for place, address in enumerate(code.addresses) if address is not None}
