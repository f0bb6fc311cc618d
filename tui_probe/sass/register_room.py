"""Room for registers at single instructions of a kernel: which are free there, and how many a warp has.

Warps of a kernel with ``setmaxnreg`` (``USETMAXREG``) exchange registers: each role has a limit of its own. A register
is free at an instruction if no code behind it names the register, and it is below the limit of each role that comes
there. Code of a function inside the kernel returns to callers of which nothing is known here, so behind ``RET`` all
registers of the kernel count as named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.sass.target import FEWEST_REGISTERS, SET_REGISTERS
from tui_probe.sass.words import CONTROL_FLOW, RZ

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tui_probe.sass.flow import FlowGraph
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

_NUMBER_FORM: Final = 4
_RET: Final = 0x150
_RD, _RA, _RB, _RC = 16, 24, 32, 64
_METADATA: Final = 40
"""Register of sparse products."""
_WITHOUT_REGISTERS: Final = frozenset({0x118, 0x11A, 0x141, 0x145, 0x147, 0x14D, 0x1C5, 0x1C8})
"""NOP, DEPBAR, BSYNC, BSSY, BRA, EXIT, WARPGROUP, USETMAXREG."""
_UNIFORM_PATH: Final = frozenset({0x02F, *range(0x80, 0x100)})
"""ELECT and the uniform path."""
_FROM_ORDINARY: Final = frozenset({0x0CA, 0x0CC})
"""R2UR, CREDUX."""
_REGISTER_FORMS, _REGISTER_FORMS_FROM_100 = frozenset({0, 1}), frozenset({0, 1, 3})
"""Forms with a register in 39:32; others have a number, a constant or a uniform register there."""
_TESTS: Final = frozenset({0x00B, 0x00C, 0x01C, 0x02A})
"""FSETP, ISETP, PLOP3, DSETP: without a third register."""
_SECOND_IN_ALL_FORMS: Final = frozenset(
    {0x044, *range(0x185, 0x18B), 0x18C, 0x18E, *range(0x1A1, 0x1AA), 0x1AE, *CONTROL_FLOW} - {0x15D}
)
"""Stores, atomics, SHFL, and branches to addresses in registers, but not NANOSLEEP."""
_UNIFORM_THIRD: Final = frozenset({*range(0x180, 0x189), 0x1A7, 0x1AE, 0x1B1})
"""Loads, stores, copies and SYNCS: bits 71:64 name a uniform register."""
_PRODUCTS: Final = range(0x1F0, 0x1F4)
"""HGMMA, IGMMA, BGMMA, QGMMA: 64 x N sums in N / 2 registers at most."""
_COLUMNS: Final = 53, 5
"""N / 8 - 1."""
_TENSOR_MEMORY: Final = range(0x1E0, 0x1F0)
_MOST_OF_TENSOR_MEMORY: Final = 128
_LONGEST, _LONGEST_FROM_100 = 4, 8
"""Registers of the longest operand elsewhere."""
_NEW_FORMS_FROM: Final = 100


def last_register_end(word: Word, arch: int) -> int:
    """Return a number that no register which a word names reaches: at least the last one plus 1."""
    operation = word.operation
    if operation in _WITHOUT_REGISTERS:
        return 0
    if operation in _UNIFORM_PATH:
        return word.ra + 1 if operation in _FROM_ORDINARY and word.ra != RZ else 0
    longest = _LONGEST_FROM_100 if arch >= _NEW_FORMS_FROM else _LONGEST
    ends = [number + longest for at in _register_fields(word, arch) if (number := word.field(at, 8)) != RZ]
    if operation in _PRODUCTS:
        ends += [number + 1 for number in [word.field(_METADATA, 8)] if number != RZ]
        ends += [number + 4 * (1 + word.field(*_COLUMNS)) for number in [word.rd] if number != RZ]
    elif operation in _TENSOR_MEMORY:
        ends += [number + _MOST_OF_TENSOR_MEMORY for number in (word.rd, word.rb) if number != RZ]
    return max(ends, default=0)


def _register_fields(word: Word, arch: int) -> Iterator[int]:
    """Yield the fields that may hold a register. Those of some words hold other numbers: then less seems free."""
    yield from (_RD, _RA)
    if word.operation not in _UNIFORM_THIRD and word.operation not in _TESTS:
        yield _RC
    forms = _REGISTER_FORMS_FROM_100 if arch >= _NEW_FORMS_FROM else _REGISTER_FORMS
    if word.form in forms or word.operation in _SECOND_IN_ALL_FORMS:
        yield _RB


@dataclass(frozen=True)
class RegisterRoom:
    """Registers of a kernel: by instruction those that it names, by block the first one that is free at its start, and
    the number of registers that each warp there has.
    """

    graph: FlowGraph
    named: tuple[int, ...]
    free: tuple[int, ...]
    limits: tuple[int, ...]

    @classmethod
    def of(cls, target: GraftTarget, graph: FlowGraph) -> RegisterRoom:
        """Return the room in a kernel."""
        named = [last_register_end(word, target.arch) for word in target.words]
        most = max(named, default=0)
        named = [most if word.operation == _RET else end for word, end in zip(target.words, named, strict=True)]
        own = [max((named[at] for at in block), default=0) for block in graph.blocks]
        free = _fixpoint(own, graph.predecessors, max)
        return cls(graph, tuple(named), tuple(free), tuple(_limits(target, graph)))

    def first_free(self, index: int) -> int:
        """Return the first register that no code from an instruction on names."""
        block = self.graph.block_at(index)
        following = [self.free[other] for other in self.graph.successors[block]]
        return max([*self.named[index : self.graph.blocks[block].stop], *following])

    def limit(self, index: int) -> int:
        """Return the smallest number of registers that a warp has at an instruction."""
        return self.limits[self.graph.block_at(index)]


def _fixpoint(values: Sequence[int], led_to: Sequence[Sequence[int]], join: Callable[[int, int], int]) -> list[int]:
    """Pass the value of each block on to those of ``led_to``, joined with theirs, until nothing changes."""
    result, pending = list(values), list(range(len(values)))
    while pending:
        block = pending.pop()
        for other in led_to[block]:
            joined = join(result[other], result[block])
            if joined != result[other]:
                result[other] = joined
                pending.append(other)
    return result


def _limits(target: GraftTarget, graph: FlowGraph) -> list[int]:
    """Return the smallest limit with which a warp is in each block, also before a change inside it."""
    code_words = [[target.words[at] for at in block] for block in graph.blocks]
    changes = [[_new_limit(word) for word in block if word.operation == SET_REGISTERS] for block in code_words]
    unreached = max(RZ, target.registers)
    inside = [min(block, default=unreached) for block in changes]
    entering = [unreached] * len(graph.blocks)
    entering[graph.block_at(0)] = target.registers
    pending = [graph.block_at(0)]
    seen = set(pending)
    while pending:
        block = pending.pop()
        leaving = changes[block][-1] if changes[block] else entering[block]
        for other in graph.successors[block]:
            if other not in seen or leaving < entering[other]:
                seen.add(other)
                entering[other] = min(entering[other], leaving)
                pending.append(other)
    return [min(pair) for pair in zip(entering, inside, strict=True)]


def _new_limit(word: Word) -> int:
    return word.field(32, 32) if word.form == _NUMBER_FORM else FEWEST_REGISTERS
