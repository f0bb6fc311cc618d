"""Origins of addresses: the registers and numbers that one is computed from, back to kernel parameters.

Registers are followed back over the blocks on all ways, from the address to the instructions that wrote it: through
moves, sums and ``mapa``, to constants of bank 0 that are parameters. A product is an offset, so its factors are not
followed, nor is the result of a load. For a sum of several parameters, all are returned; their values show which of
them is a pointer. The address of a tensor map in a parameter is a number added to that of the parameters, which is a
constant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import UnsupportedKernelError
from tui_probe.sass.accesses import access_of, register_pair
from tui_probe.sass.bulk_copies import bulk_copy_of
from tui_probe.sass.register_operands import operands_of
from tui_probe.sass.uniform_registers import uniform_bits
from tui_probe.sass.words import CONSTANT_LOADS, IMMEDIATE, LDCU, PT, RZ

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
_LDCU_CONSTANT: Final = 37, 17
"""Offset of a constant in bytes; that of other instructions is in units of four bytes."""
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
_SHIFT, _CLUSTER_SHIFT = (75, 5), 24
_PERMUTATIONS, _MAPA_SELECTOR = frozenset({0x016, 0x096}), 0x654
"""PRMT, UPRMT: three bytes of the third operand below one of the first. So ``mapa`` puts the number of another block of
the cluster into the highest byte of an address.
"""
_PRODUCT_SUMS: Final = frozenset({0x024, 0x025, 0x0A4, 0x0A5})
"""IMAD, IMAD.WIDE and the uniform ones."""
_WIDE_PRODUCTS: Final = frozenset({0x025, 0x0A5})
_TO_UNIFORM: Final = 0x0CA
"""R2UR."""
_UNIFORM_PATH: Final = range(0x80, 0x100)
_UIADD3_64: Final = 0x097
_RESULT_SIZE, _RESULT_REGISTERS = (73, 3), (1, 1, 1, 1, 1, 2, 4, 4)


_POINTERS_TO_PARAMETERS: Final = frozenset({0x198, 0x348})
"""Offsets in bank 0 of the address of the kernel's parameters: on sm_90, and from sm_100 on."""
TENSOR_MAP_BYTES: Final = 128
_NO_REGISTER: Final = -1
_MAX_STEPS: Final = 4096
"""Registers of blocks that an address is followed through at most."""


class AddressTerm(NamedTuple):
    """A register of an address, and the offset that is added to it.

    ``is_indexed``: more than a number is added. At the end of a path there is a constant of bank 0 in place of the
    register, or only the number.
    """

    register: int
    offset: int
    is_indexed: bool = False
    constant: int | None = None


class AddressPaths:
    """Follows the registers of an address back to the numbers and constants that it is the sum of. With ``all_ends``,
    ways also end at other instructions, such as loads: with an ``indexed`` term without a constant.
    """

    def __init__(self, target: GraftTarget, graph: FlowGraph, *, all_ends: bool = False) -> None:
        self._target, self._graph, self._all_ends = target, graph, all_ends
        self._results: dict[int, frozenset[int]] = {}

    def find_ends(self, index: int, terms: set[AddressTerm]) -> set[AddressTerm]:
        """Return the ends of all ways from registers in front of an instruction; none if there are too many."""
        path_ends, visited = set[AddressTerm](), set[tuple[int, AddressTerm]]()
        pending = [(self._graph.block_at(index), index, terms)]
        while pending:
            block, end, terms = pending.pop()
            for number in range(end - 1, self._graph.blocks[block].start - 1, -1):
                if not terms:
                    break
                terms = self._step_back(number, terms, path_ends)
            for predecessor in self._graph.predecessors[block]:
                unvisited = {term for term in terms if (predecessor, term) not in visited}
                visited.update((predecessor, term) for term in unvisited)
                if unvisited and len(visited) < _MAX_STEPS:
                    pending.append((predecessor, self._graph.blocks[predecessor].stop, unvisited))
        return path_ends if len(visited) < _MAX_STEPS else set()

    def _destinations(self, index: int) -> frozenset[int]:
        if index not in self._results:
            self._results[index] = written_registers(self._target.words[index], self._target.arch)
        return self._results[index]

    def _step_back(self, index: int, terms: set[AddressTerm], path_ends: set[AddressTerm]) -> set[AddressTerm]:
        """Return the terms before an instruction that those behind it are computed from."""
        destinations = self._destinations(index)
        written_terms = {term for term in terms if term.register in destinations}
        if not written_terms:
            return terms
        word = self._target.words[index]
        number, followed, constant = added_number(word), list(followed_registers(word, self._target.arch)), None
        if (constant := constant_of(word)) is not None or (number is not None and not followed):
            path_ends.update(
                _replace_register(written_terms, _NO_REGISTER, number, adds_product(word) or bool(followed), constant)
            )
        elif self._all_ends and not followed:
            path_ends.update(_replace_register(written_terms, _NO_REGISTER, None, adds_index=True))
        adds_index = len(followed) + (constant is not None) > 1 or adds_product(word)
        source_terms = {
            term for register in followed for term in _replace_register(written_terms, register, number, adds_index)
        }
        return (terms - written_terms if word.is_unconditional else terms) | source_terms


def _replace_register(
    terms: set[AddressTerm], register: int, number: int | None, adds_index: bool, constant: int | None = None
) -> Iterator[AddressTerm]:
    """Yield terms with another register, and what is added to that."""
    for term in terms:
        yield AddressTerm(register, term.offset + (number or 0), term.is_indexed or adds_index, constant)


class AddressOrigins:
    """Finds the kernel parameters that the addresses of accesses of global memory come from."""

    def __init__(self, target: GraftTarget, graph: FlowGraph) -> None:
        self._target = target
        self._graph = graph
        self._parameters = tuple(target.parameter_ranges())
        self._paths = AddressPaths(target, graph, all_ends=True)

    def transfer_parameters(self, index: int) -> tuple[int, ...]:
        """Return the numbers of the parameters that an access or a bulk copy gets its address from, or the tensor map
        of its tensor; () if they are unknown.
        """
        copy = bulk_copy_of(self._target.words[index], self._target.arch)
        if copy is None:
            return self.access_parameters(index)
        address = UNIFORM_BASE + copy.address
        constants = self._constants(index, frozenset({address, address + 1}))
        if copy.size is None:
            path_ends = self._paths.find_ends(index, {AddressTerm(address, 0)})
            base = self._target.base
            constants |= {base + end.offset for end in path_ends if end.constant in _POINTERS_TO_PARAMETERS}
        return tuple(sorted(set(self._numbers(constants))))

    def map_place(self, index: int) -> tuple[int, int] | None:
        """Return the number of the parameter with the tensor map of a bulk copy, and the byte offset of the map there;
        None without such a map, and if the map is not known to be in a parameter. Where another instruction wrote the
        address of a copy with a guard, the guard is false.
        """
        word = self._target.words[index]
        copy = bulk_copy_of(word, self._target.arch)
        if copy is None or copy.size is not None:
            return None
        path_ends = self._paths.find_ends(index, {AddressTerm(UNIFORM_BASE + copy.address, 0)})
        base, places = self._target.base, set[int]()
        for end in path_ends:
            if end.constant in _POINTERS_TO_PARAMETERS and not end.is_indexed:
                places.add(base + end.offset)
            elif (end.constant or 0) >= base or (end.is_indexed and word.is_unconditional):
                return None
        for number, offsets in self._parameters:
            if len(places) == 1 and (place := min(places)) in offsets and place + TENSOR_MAP_BYTES <= offsets.stop:
                return number, place - offsets.start
        return None

    def access_parameters(self, index: int) -> tuple[int, ...]:
        """Return the numbers of the parameters that an access gets its address from; () if they are unknown."""
        try:
            access = access_of(self._target.words[index], self._target.arch)
        except UnsupportedKernelError:
            return ()
        if access is None or access.address.is_shared:
            return ()
        uniform = access.address.uniform
        registers = {*register_pair(access.address.register)} - {RZ}
        registers |= set() if uniform is None else {UNIFORM_BASE + uniform, UNIFORM_BASE + uniform + 1}
        return tuple(sorted(set(self._numbers(self._constants(index, frozenset(registers))))))

    def _constants(self, index: int, registers: frozenset[int]) -> set[int]:
        """Return the offsets in bank 0 that registers before an instruction are computed from."""
        constants: set[int] = set()
        visited: dict[int, frozenset[int]] = {}
        pending = [(self._graph.block_at(index), index, registers)]
        while pending:
            block, end, registers = pending.pop()
            for number in range(end - 1, self._graph.blocks[block].start - 1, -1):
                if not registers:
                    break
                registers = self._step_back(self._target.words[number], registers, constants)
            for predecessor in self._graph.predecessors[block] if registers else ():
                visited_registers = visited.get(predecessor, frozenset())
                if not registers <= visited_registers:
                    visited[predecessor] = visited_registers | registers
                    pending.append((predecessor, self._graph.blocks[predecessor].stop, registers))
        return constants

    def _step_back(self, word: Word, registers: frozenset[int], constants: set[int]) -> frozenset[int]:
        """Return the registers before an instruction that those behind it are computed from."""
        destinations = written_registers(word, self._target.arch)
        if not registers & destinations:
            return registers
        if (constant := constant_of(word)) is not None:
            constants.add(constant)
        remaining = registers - destinations if word.is_unconditional else registers
        return remaining | frozenset(followed_registers(word, self._target.arch))

    def _numbers(self, constants: set[int]) -> Iterator[int]:
        for number, offsets in self._parameters:
            if any(constant in offsets for constant in constants):
                yield number


def written_registers(word: Word, arch: int) -> frozenset[int]:
    """Return the registers that an instruction writes in the lanes that execute it, if it may write addresses."""
    operation = word.operation
    if operation in _UNIFORM_PATH or operation == LDCU:
        register = UNIFORM_BASE + word.field(16, uniform_bits(arch))
        return frozenset(range(register, register + _uniform_results(word)))
    if operation in CONSTANT_LOADS:
        return frozenset(range(word.rd, word.rd + _RESULT_REGISTERS[word.field(*_RESULT_SIZE)])) - {RZ}
    if operation in _WIDE_PRODUCTS:
        return frozenset(register_pair(word.rd)) - {RZ}
    mask = operands_of(word.with_guard(PT), arch).kill_mask
    return frozenset(number for number in range(word.rd, min(word.rd + 8, RZ)) if mask >> number & 1)


def _uniform_results(word: Word) -> int:
    if word.operation in CONSTANT_LOADS:
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
        return word.field(*_SHIFT) != _CLUSTER_SHIFT
    is_sum = word.form in _NUMBER_FORMS and word.field(*IMMEDIATE) == 1
    return word.operation in _PRODUCT_SUMS and word.ra != RZ and not is_sum


def constant_of(word: Word) -> int | None:
    """Return the offset of the constant of bank 0 in a followed operand; None without one."""
    if word.operation not in CONSTANT_LOADS and (
        word.form not in _CONSTANT_FORMS
        or word.operation not in _MOVES | _SUMS | _SELECTIONS | _SHIFTED_SUMS | _PRODUCT_SUMS
        or (word.operation in _PRODUCT_SUMS and word.form not in _THIRD_FORMS)
    ):
        return None
    if word.field(*_BANK):
        return None
    return word.field(*_LDCU_CONSTANT) if word.operation == LDCU else word.field(*_CONSTANT) * _CONSTANT_UNIT


def followed_registers(word: Word, arch: int) -> Iterator[int]:
    """Yield the registers that an address, or a part of it, may come from."""
    operation = word.operation
    if operation == _TO_UNIFORM:
        yield word.ra
    elif operation in _MOVES | _SHIFTED_SUMS:
        yield from _operand(word, _RB, arch)
    elif operation in _PERMUTATIONS and word.form in _NUMBER_FORMS and word.field(*IMMEDIATE) == _MAPA_SELECTOR:
        yield from _operand(word, _RC, arch)
    elif operation in _SUMS | _SELECTIONS:
        for bit in (_RA, _RB, *((_RC,) if operation in _SUMS - {_VIADD} else ())):
            yield from _operand(word, bit, arch)
    elif operation in _PRODUCT_SUMS:
        addend = _RB if word.form in _THIRD_FORMS else _RC
        if word.form in _NUMBER_FORMS and word.field(*IMMEDIATE) == 1:  # IMAD.IADD
            yield from _operand(word, _RA, arch)
        for register in _operand(word, addend, arch):
            yield from (register, register + 1) if operation in _WIDE_PRODUCTS else (register,)


def _operand(word: Word, bit: int, arch: int) -> Iterator[int]:
    """Yield the register of an operand; nothing for a number, a constant, or a register that is always 0."""
    if bit == _RB and word.form != _REGISTER_FORM and word.form not in _UNIFORM_FORMS:
        return
    if word.operation in _UNIFORM_PATH or (bit == _RB and word.form in _UNIFORM_FORMS):
        number = word.field(bit, uniform_bits(arch))
        if number != (1 << uniform_bits(arch)) - 1:
            yield UNIFORM_BASE + number
    elif word.field(bit, 8) != RZ:
        yield word.field(bit, 8)
