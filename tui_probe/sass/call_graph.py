"""Which functions of a cubin call which, as its section ``.nv.callgraph`` tells.

It holds pairs of numbers in groups, each behind a pair whose second number is the group's mark: calls by name, as pairs
of symbols; functions whose address is taken, and callers by an address, both with the place of the type of function
that it is among the names of symbols.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tui_probe.sass.cubin import Cubin

CALL_GRAPH: Final = ".nv.callgraph"
PAIR: Final = struct.Struct("<II")
FIRST_MARK: Final = 0xFFFF0000
"""Second numbers of a pair from here on are no symbols, but begin a group of pairs."""
CALLS: Final = 0xFFFFFFFF
ADDRESSED: Final = 0xFFFFFFFE
CALLERS_BY_ADDRESS: Final = 0xFFFFFFFD


@dataclass(frozen=True, slots=True)
class CallGraph:
    """By numbers of code sections: the symbols of what each calls by name, and those that call by an address.

    ``has_addressed``: whether the module has functions that are called by their address.
    """

    calls: Mapping[int, frozenset[int]]
    by_address: frozenset[int]
    has_addressed: bool

    @classmethod
    def of(cls, cubin: Cubin) -> CallGraph:
        """That of a cubin; an empty one of a cubin without. Raises ImageError for symbols that are not there."""
        calls: dict[int, set[int]] = {}
        by_address: set[int] = set()
        has_addressed = False
        for mark, caller, callee in grouped(cubin):
            if mark == CALLS:
                calls.setdefault(cubin.symbol(caller).section, set()).add(callee)
            elif mark == CALLERS_BY_ADDRESS:
                by_address.add(cubin.symbol(caller).section)
            has_addressed |= mark == ADDRESSED
        return cls(
            {caller: frozenset(called) for caller, called in calls.items()}, frozenset(by_address), has_addressed
        )


def grouped(cubin: Cubin) -> Iterator[tuple[int, int, int]]:
    """The pairs of a call graph, each behind the mark of its group, 0 for one before the first mark."""
    section = cubin.find(CALL_GRAPH)
    mark = 0
    for first, second in pairs(cubin.content(section)) if section else ():
        if second >= FIRST_MARK:
            mark = second
        else:
            yield mark, first, second


def pairs(content: bytes) -> list[tuple[int, int]]:
    """A section of pairs of numbers."""
    return list(PAIR.iter_unpack(content[: len(content) // PAIR.size * PAIR.size]))
