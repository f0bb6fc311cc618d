"""NVTX ranges of the program, with the launches that they enclose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.trace.process_events import NvtxRange

Run = tuple[int, int]
"""First and last of launches that follow one another, by number."""


@dataclass(slots=True)
class Range:
    """One range. ``thread`` is None if it encloses the launches of all threads; ``end_ns`` None if it never ended.

    Times are nanoseconds since 1970, on the host: of the calls, not of the kernels.
    """

    id: int
    parent: int | None
    thread: int | None
    start_ns: int
    end_ns: int | None
    domain: str | None
    text: str
    runs: list[Run]

    @property
    def launches(self) -> int:
        """How many launches it encloses, those of inner ranges among them."""
        return sum(last - first + 1 for first, last in self.runs)


class RangeTable:
    """The ranges of a process, by the order in which they began."""

    def __init__(self) -> None:
        self._by_id: dict[int, Range] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Range]:
        return iter([self._by_id[key] for key in sorted(self._by_id)])

    def get(self, range_id: int | None) -> Range | None:
        """The range of that id; None if it is not known, as one without launches of its own is not."""
        return None if range_id is None else self._by_id.get(range_id)

    def add(self, event: NvtxRange) -> None:
        """Add a range, or another part of one."""
        known = self._by_id.get(event.id)
        if known is None:
            self._by_id[event.id] = Range(
                event.id, event.parent, event.thread, event.start_ns, event.end_ns, event.domain, event.text,
                list(event.runs),
            )  # fmt: skip
        else:
            known.runs += event.runs
            known.end_ns = event.end_ns if known.end_ns is None else known.end_ns

    def depth(self, one: Range) -> int:
        """How many ranges enclose it: 0 for an outermost one."""
        depth, seen, outer = 0, {one.id}, self.get(one.parent)
        while outer is not None and outer.id not in seen:
            seen.add(outer.id)
            depth, outer = depth + 1, self.get(outer.parent)
        return depth
