"""Loads and stores of the stack by source line: where registers are spilled in machine code.

ptxas addresses the stack by R1 and a number. A kernel without arrays in local memory accesses it there for spills only;
ptxas reports how many bytes it spilled.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.words import STACK_POINTER, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tui_probe.sass.target import GraftTarget

_LDL, _STL = 0x183, 0x187
_SIZE: Final = 73, 3
_BYTES: Final = (1, 1, 2, 2, 4, 8, 16, 16)
"""Bytes by value of the field: U8, S8, U16, S16, 32, 64, 128 bits."""
_ITERATIONS: Final = 8
"""Executions of a loop that rank lines, where nothing counted them."""


@dataclass(frozen=True, slots=True)
class StackAccess:
    """A load or store of the stack, in ``depth`` loops."""

    index: int
    is_load: bool
    bytes: int
    depth: int

    @property
    def at(self) -> int:
        """Byte offset in the kernel's code."""
        return self.index * WORD_BYTES


@dataclass(frozen=True, slots=True)
class SpillLine:
    """Accesses of the stack at a source line; ``place`` is None where it is unknown. ``bytes`` are those of a thread,
    each instruction once; ``depth`` is that of the innermost loop.
    """

    place: tuple[str, int] | None
    loads: int
    stores: int
    bytes: int
    depth: int
    offsets: tuple[int, ...]


def stack_accesses(target: GraftTarget, graph: FlowGraph | None = None) -> list[StackAccess]:
    """Return the loads and stores at R1 and a number that the entry reaches, in order of the code.

    Raises UnsupportedKernelError for a branch through a register without a table of targets.
    """
    graph = graph or FlowGraph.of(target)
    accesses = []
    for number in sorted(graph.dominators):
        for index in graph.blocks[number]:
            word = target.words[index]
            if word.operation in (_LDL, _STL) and word.ra == STACK_POINTER:
                size = _BYTES[word.field(*_SIZE)]
                accesses.append(StackAccess(index, word.operation == _LDL, size, graph.depths[number]))
    return sorted(accesses, key=lambda access: access.index)


def spills_by_line(accesses: Iterable[StackAccess], lines: Mapping[int, tuple[str, int]]) -> list[SpillLine]:
    """Add accesses up by source line, those first that move most bytes; loops count several times."""
    groups: dict[tuple[str, int] | None, list[StackAccess]] = defaultdict(list)
    for access in accesses:
        groups[lines.get(access.at)].append(access)
    ranked = sorted(groups.items(), key=lambda group: -sum(map(_weight, group[1])))
    return [_spill_line(place, group) for place, group in ranked]


def _weight(access: StackAccess) -> int:
    return access.bytes * int(_ITERATIONS**access.depth)


def _spill_line(place: tuple[str, int] | None, group: list[StackAccess]) -> SpillLine:
    loads = sum(access.is_load for access in group)
    return SpillLine(
        place,
        loads,
        len(group) - loads,
        sum(access.bytes for access in group),
        max(access.depth for access in group),
        tuple(access.at for access in group),
    )
