"""Origins of addresses: the registers and numbers that one is computed from, back to kernel parameters.

Registers are followed back over the blocks on all ways, from the address to the instructions that wrote it: through
moves and sums, to constants of bank 0 that are parameters. A product is an offset, so its factors are not followed,
nor is the result of a load. For a sum of several parameters, all are returned; their values show which of them is a
pointer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.errors import UnsupportedKernelError
from tui_probe.sass.accesses import access_of, register_pair
from tui_probe.sass.register_room import operands_of
from tui_probe.sass.words import ALWAYS, IMMEDIATE, RZ, uniform_bits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.sass.flow import FlowGraph
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

_RA, _RB, _RC = 24, 32, 64
UNIFORM_BASE: Final = 256
"""Number that stands for uniform register 0; ordinary registers have their own."""
_CONSTANT_FORMS: Final = frozenset({3, 5})
_UNIFORM_FORMS, _REGISTER_FORM = frozenset({6, 7}), 1
_NUMBER_FORMS: Final = frozenset({4})
"""Forms whose bits 63:32 hold a number as the second operand."""
_THIRD_FORMS: Final = frozenset({2, 3, 7})
"""Forms whose bits 63:32 hold the third operand, and 71:64 the second."""
_BANK, _CONSTANT = (54, 5), (40, 14)
_CONSTANT_UNIT: Final = 4
_MOVES: Final = frozenset({0x002, 0x082})
"""MOV, UMOV."""
_VIADD: Final = 0x036
_SUMS: Final = frozenset({0x010, _VIADD, 0x090, 0x097})
"""IADD3, VIADD, UIADD3, UIADD3.64."""
_SELECTIONS: Final = frozenset({0x007, 0x087})
"""SEL, USEL."""
_SHIFTED_SUMS: Final = frozenset({0x011, 0x091})
"""LEA, ULEA: a shifted offset and a base."""
_SHIFT, _OF_CLUSTER = (75, 5), 24
_PRODUCT_SUMS: Final = frozenset({0x024, 0x025, 0x0A4, 0x0A5})
"""IMAD, IMAD.WIDE and the uniform ones."""
_WIDE_PRODUCTS: Final = frozenset({0x025, 0x0A5})
_CONSTANT_LOADS: Final = frozenset({0x182, 0x0B9, 0x1AC})
"""LDC, ULDC, LDCU."""
_TO_UNIFORM: Final = 0x0CA
"""R2UR."""
_UNIFORM_PATH: Final = range(0x80, 0x100)
_UIADD3_64: Final = 0x097
_LDCU: Final = 0x1AC
_RESULT_SIZE, _RESULT_REGISTERS = (73, 3), (1, 1, 1, 1, 1, 2, 4, 4)


class AddressOrigins:
    """Finds the kernel parameters that the addresses of accesses of global memory come from."""

    def __init__(self, target: GraftTarget, graph: FlowGraph) -> None:
        self._target = target
        self._graph = graph
        self._parameters = tuple(target.parameter_ranges())

    def of_access(self, index: int) -> tuple[int, ...]:
        """Return the numbers of the parameters that an access gets its address from; () if they are unknown."""
        try:
            access = access_of(self._target.words[index], self._target.arch)
        except UnsupportedKernelError:
            return ()
        if access is None or access.address.shared:
            return ()
        uniform = access.address.uniform
        wanted = {*register_pair(access.address.register)} - {RZ}
        wanted |= set() if uniform is None else {UNIFORM_BASE + uniform, UNIFORM_BASE + uniform + 1}
        return tuple(sorted(set(self._numbers(self._constants(index, frozenset(wanted))))))

    def _constants(self, index: int, wanted: frozenset[int]) -> set[int]:
        """Return the offsets in bank 0 that registers before an instruction are computed from."""
        constants: set[int] = set()
        seen: dict[int, frozenset[int]] = {}
        ways = [(self._graph.block_at(index), index, wanted)]
        while ways:
            block, end, wanted = ways.pop()
            for at in range(end - 1, self._graph.blocks[block].start - 1, -1):
                if not wanted:
                    break
                wanted = self._before(self._target.words[at], wanted, constants)
            for before in self._graph.predecessors[block] if wanted else ():
                known = seen.get(before, frozenset())
                if not wanted <= known:
                    seen[before] = known | wanted
                    ways.append((before, self._graph.blocks[before].stop, wanted))
        return constants

    def _before(self, word: Word, wanted: frozenset[int], constants: set[int]) -> frozenset[int]:
        """Return the registers before an instruction that those behind it are computed from."""
        written = written_registers(word, self._target.arch)
        if not wanted & written:
            return wanted
        if (constant := _constant_of(word)) is not None:
            constants.add(constant)
        left = wanted - written if word.is_unconditional else wanted
        return left | frozenset(followed_registers(word, self._target.arch))

    def _numbers(self, constants: set[int]) -> Iterator[int]:
        for number, offsets in self._parameters:
            if any(constant in offsets for constant in constants):
                yield number


def written_registers(word: Word, arch: int) -> frozenset[int]:
    """Return the registers that an instruction writes in the lanes that execute it, if it may write addresses."""
    operation = word.operation
    if operation in _UNIFORM_PATH or operation == _LDCU:
        first = UNIFORM_BASE + word.field(16, uniform_bits(arch))
        return frozenset(range(first, first + _uniform_results(word)))
    if operation in _CONSTANT_LOADS:
        return frozenset(range(word.rd, word.rd + _RESULT_REGISTERS[word.field(*_RESULT_SIZE)])) - {RZ}
    if operation in _WIDE_PRODUCTS:
        return frozenset(register_pair(word.rd)) - {RZ}
    mask = operands_of(word.guarded(ALWAYS), arch).kills
    return frozenset(number for number in range(word.rd, min(word.rd + 8, RZ)) if mask >> number & 1)


def _uniform_results(word: Word) -> int:
    if word.operation in _CONSTANT_LOADS:
        return _RESULT_REGISTERS[word.field(*_RESULT_SIZE)]
    return 2 if word.operation in _WIDE_PRODUCTS or word.operation == _UIADD3_64 else 1


def added_number(word: Word) -> int | None:
    """Return the number that an instruction adds to the registers that are followed, or sets its result to; None of an
    instruction that does not.
    """
    operation = word.operation
    is_third = operation in _PRODUCT_SUMS and word.form == 2
    if is_third or (operation in _MOVES | _SUMS | _SHIFTED_SUMS and word.form in _NUMBER_FORMS):
        value = word.field(*IMMEDIATE)
        return value - (value >> 31 << 32)
    return None


def adds_product(word: Word) -> bool:
    """Return whether an instruction adds a product or a shifted register to the registers that are followed.

    The number of the block in its cluster, which is shifted into the highest byte, is none.
    """
    if word.operation in _SHIFTED_SUMS:
        return word.field(*_SHIFT) != _OF_CLUSTER
    is_sum = word.form in _NUMBER_FORMS and word.field(*IMMEDIATE) == 1
    return word.operation in _PRODUCT_SUMS and word.ra != RZ and not is_sum


def _constant_of(word: Word) -> int | None:
    """Return the offset of the constant of bank 0 in a followed operand; None without one."""
    if word.operation not in _CONSTANT_LOADS and (
        word.form not in _CONSTANT_FORMS
        or word.operation not in _MOVES | _SUMS | _SELECTIONS | _SHIFTED_SUMS | _PRODUCT_SUMS
        or (word.operation in _PRODUCT_SUMS and word.form not in _THIRD_FORMS)
    ):
        return None
    return None if word.field(*_BANK) else word.field(*_CONSTANT) * _CONSTANT_UNIT


def followed_registers(word: Word, arch: int) -> Iterator[int]:
    """Yield the registers that an address, or a part of it, may come from."""
    operation = word.operation
    if operation == _TO_UNIFORM:
        yield word.ra
    elif operation in _MOVES | _SHIFTED_SUMS:
        yield from _operand(word, _RB, arch)
    elif operation in _SUMS | _SELECTIONS:
        for at in (_RA, _RB, *((_RC,) if operation in _SUMS - {_VIADD} else ())):
            yield from _operand(word, at, arch)
    elif operation in _PRODUCT_SUMS:
        third = _RB if word.form in _THIRD_FORMS else _RC
        if word.form in _NUMBER_FORMS and word.field(*IMMEDIATE) == 1:  # IMAD.IADD
            yield from _operand(word, _RA, arch)
        for first in _operand(word, third, arch):
            yield from (first, first + 1) if operation in _WIDE_PRODUCTS else (first,)


def _operand(word: Word, at: int, arch: int) -> Iterator[int]:
    """Yield the register of an operand; nothing for a number, a constant, or a register that is always 0."""
    if at == _RB and word.form != _REGISTER_FORM and word.form not in _UNIFORM_FORMS:
        return
    if word.operation in _UNIFORM_PATH or (at == _RB and word.form in _UNIFORM_FORMS):
        number = word.field(at, uniform_bits(arch))
        if number != (1 << uniform_bits(arch)) - 1:
            yield UNIFORM_BASE + number
    elif word.field(at, 8) != RZ:
        yield word.field(at, 8)
