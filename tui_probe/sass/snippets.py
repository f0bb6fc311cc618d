"""Code of a snippet as ptxas made it, its marks, and its form in the kernel that it is grafted into.

The snippet is the code of a kernel of its own. What is left of it: no stack pointer, no last ``EXIT``, moves in the
places of marks, its parameters where they lie behind those of the kernel, and uniform registers that the kernel does
not use. It must run from its first to its last instruction: of control flow only an ``EXIT`` with a guard is allowed,
and that only in code at exits. So a warp stays together, and no convergence barrier is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass import nv_info
from tui_probe.sass.nv_info import read_attributes
from tui_probe.sass.target import INFO_PREFIX, GraftTarget
from tui_probe.sass.uniform_registers import (
    FIRST_FREE_UNIFORM,
    UNIFORM_KEPT_BY_CALLS,
    UNIFORM_REGISTERS,
    exact_uniform_fields,
    named_uniform_registers,
    uniform_register_at,
    with_uniform_registers,
)
from tui_probe.sass.uniform_replacement import without_uniform
from tui_probe.sass.words import (
    ALL_BARRIERS,
    ALL_BYTES,
    BARRIER_SET_STALL,
    BYTE_MASK,
    CONTROL_FLOW,
    DESTINATION,
    EXIT,
    GUARD,
    MOV,
    MOV_UNIFORM,
    NO_BARRIER,
    OPERAND_BARRIER,
    RZ,
    SOURCE_B,
    STACK_POINTER,
    UNIFORM_OPERAND,
    WORD_BYTES,
    Word,
    constant_bank,
    constant_offset,
    is_indexed_constant,
    nop_word,
    with_constant_offset,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tui_probe.binaries.cubin import Cubin
    from tui_probe.sass.nv_info import Attribute

# Marks in a snippet's SASS: accesses to shared memory that a graft replaces with moves.
#
# An access to address ``MARK_STEP * number`` is mark ``number``. Snippets themselves never use shared memory.

LOAD_MARK: Final = 0x184
"""LDS."""
STORE_MARK: Final = 0x188
"""STS."""
MARK_STEP: Final = 0x1000
"""Bytes between the addresses of two marks; the lowest number is 1."""
_ADDRESS_OFFSET: Final = 40, 24
_STORES: Final = frozenset({0x185, 0x186, 0x18E, 0x1A6, 0x1A8, 0x1A9, 0x18A, 0x18B, 0x1A1, 0x1A2, 0x1A3})
_MOVE_STALL: Final = 12
"""Cycles after which any instruction can read the result of a move."""
_UMOV: Final = 0xC82
_STORED_REGISTER: Final = 64
"""Lowest bit of the uniform register whose value a mark stores."""


def is_mark(word: Word) -> bool:
    """Return whether an instruction of a snippet is a mark."""
    return word.operation in (LOAD_MARK, STORE_MARK)


def mark_number(word: Word) -> int:
    """Return the number of a mark."""
    return word.field(*_ADDRESS_OFFSET) // MARK_STEP


@dataclass(frozen=True, slots=True)
class Snippet:
    """The code of a snippet. ``base`` and ``probe_base`` say where its kernel's parameters, and the probe's among
    them, are in bank 0; ``registers`` are those that its kernel needs, ``flags`` further attributes for the driver.
    """

    arch: int
    words: tuple[Word, ...]
    base: int
    probe_base: int
    registers: int
    flags: tuple[Attribute, ...]

    @classmethod
    def from_cubin(cls, cubin: Cubin, name: str, leading_bytes: int, *, may_exit: bool) -> Snippet:
        """Read the code of kernel ``name``, whose first ``leading_bytes`` bytes of parameters are not the probe's.

        ``may_exit`` allows lanes to exit before its end. Raises UnsupportedKernelError for code that cannot be grafted.
        """
        target = GraftTarget.from_cubin(cubin, name)
        _refuse_stack(cubin)
        code = target.words[: target.exits()[-1] // WORD_BYTES]
        if code and code[0].rd == STACK_POINTER and _parameter_offset(code[0]) is not None:
            code = code[1:]
        for word in code:
            _refuse(word, may_exit=may_exit)
        registers = target.registers
        if may_exit:
            ordinary_code, registers = without_uniform(code, registers, target.arch)
            code = tuple(ordinary_code)
        flags = tuple(attribute for attribute in target.attributes if attribute.format == nv_info.FLAG_FORMAT)
        return cls(target.arch, code, target.base, target.base + leading_bytes, registers, flags)

    def uniform_pairs(self) -> list[int]:
        """Return the even numbers of the pairs of uniform registers that it uses."""
        pairs = {number & ~1 for word in self.words for number in named_uniform_registers(word, self.arch) or ()}
        return sorted(pairs)

    def place(
        self, base: int, probe_base: int, uniform: Mapping[int, int], carried: Sequence[KeptRegister]
    ) -> list[Word]:
        """Return its words in a kernel whose parameters begin at ``base`` and the probe's at ``probe_base``.

        ``uniform`` says which even register stands for each of ``uniform_pairs``; ``carried`` are those that keep what
        lives from the entry to the exits. Raises UnsupportedKernelError if the kernel is for another ABI.
        """
        if base != self.base:
            raise UnsupportedKernelError(because("graft-base", found=base, expected=self.base))
        numbers = {number: uniform[number & ~1] | number & 1 for pair in uniform for number in (pair, pair + 1)}
        shift = probe_base - self.probe_base
        code = []
        for word in self.words:
            renumbered = with_uniform_registers(word, numbers, self.arch) if not is_mark(word) else word
            code.append(_mark_move(word, numbers, carried, self.arch) or self._shift_parameter(renumbered, shift))
        return _with_store_barriers(code)

    def reads_as(self, moved_snippet: Snippet) -> bool:
        """Return whether ``moved_snippet``, whose parameters lie elsewhere, is this code with its parameters there."""
        shift = moved_snippet.probe_base - self.probe_base
        return moved_snippet.words == tuple(self._shift_parameter(word, shift) for word in self.words)

    def _shift_parameter(self, word: Word, shift: int) -> Word:
        """Return a word whose parameter of the probe lies ``shift`` bytes further."""
        offset = _parameter_offset(word)
        if offset is None or offset < self.probe_base:
            return word
        return with_constant_offset(word, offset + shift)


class KeptRegister(NamedTuple):
    """A register that keeps a value from the entry to the exits: a uniform one or, of each lane, an ordinary one."""

    is_uniform: bool
    number: int


class UniformAssignment(NamedTuple):
    """Even uniform register that stands for each pair of the entry's code and of the exits', and which ones carry."""

    entry: dict[int, int]
    exits: dict[int, int]
    carried: list[KeptRegister]

    @property
    def pairs(self) -> set[int]:
        """The even numbers of all uniform registers that the code uses."""
        carried_pairs = {place.number & ~1 for place in self.carried if place.is_uniform}
        return {*self.entry.values(), *self.exits.values(), *carried_pairs}


def assign_uniform_registers(
    entry: Sequence[int], exits: Sequence[int], used_registers: Iterable[int], carried: int, first_ordinary: int | None
) -> UniformAssignment:
    """Assign uniform registers that a kernel does not use to the pairs of its exit code and to ``carried`` values.

    The entry code may have all registers but those that carry: at the entry none holds anything yet. Where too few are
    free, ordinary registers from number ``first_ordinary`` on carry. Raises UnsupportedKernelError if that is None, and
    if too few are free for the exit code.
    """
    used_set = set(used_registers)
    free = [number for number in range(UNIFORM_REGISTERS - 1, FIRST_FREE_UNIFORM - 1, -1) if number not in used_set]
    pairs = [number for number in free if not number & 1 and number + 1 in free]
    exit_pairs = dict(zip(exits, pairs, strict=False))
    # Those that calls leave as they are first, then those that are in no pair.
    single = sorted(
        (number for number in free if number & ~1 not in exit_pairs.values()),
        key=lambda number: (number < UNIFORM_KEPT_BY_CALLS, number & ~1 in pairs, -number),
    )
    if len(exit_pairs) < len(exits) or (len(single) < carried and first_ordinary is None):
        raise UnsupportedKernelError(because("graft-uniform"))
    if len(single) < carried:
        kept_registers = [
            KeptRegister(False, number) for number in range(first_ordinary or 0, (first_ordinary or 0) + carried)
        ]
    else:
        kept_registers = [KeptRegister(True, number) for number in single[:carried]]
    taken_pairs = {register.number & ~1 for register in kept_registers if register.is_uniform}
    entry_pairs = [
        pair for pair in [*pairs, *range(FIRST_FREE_UNIFORM, UNIFORM_REGISTERS - 1, 2)] if pair not in taken_pairs
    ]
    return UniformAssignment(dict(zip(entry, dict.fromkeys(entry_pairs), strict=False)), exit_pairs, kept_registers)


def with_initial_wait(words: Sequence[Word]) -> list[Word]:
    """Code that first waits for all that was begun before it."""
    return [words[0].with_wait_mask(ALL_BARRIERS), *words[1:]] if words else []


def with_final_wait(words: Sequence[Word]) -> list[Word]:
    """Code behind which the kernel continues, once all that this code began is over: it reads and writes registers."""
    barriers = {
        barrier for word in words for barrier in (word.write_barrier, word.read_barrier) if barrier != NO_BARRIER
    }
    wait_mask = sum(1 << barrier for barrier in barriers) & ALL_BARRIERS
    return (
        [*words, nop_word().with_stall(BARRIER_SET_STALL).with_wait_mask(wait_mask)]
        if _has_access(words)
        else list(words)
    )


def _has_access(words: Sequence[Word]) -> bool:
    return any(word.operation in _STORES for word in words)


def _parameter_offset(word: Word) -> int | None:
    """Return the offset in bank 0 of the constant that a word reads; None for one that reads none there."""
    return constant_offset(word) if constant_bank(word) == 0 else None


def _refuse_stack(cubin: Cubin) -> None:
    for attribute in read_attributes(cubin.content(cubin.section(INFO_PREFIX))):
        if attribute.number in (nv_info.FRAME_SIZE, nv_info.MIN_STACK_SIZE) and any(attribute.words()[1:]):
            raise UnsupportedKernelError(because("graft-snippet", what="a stack"))


def _refuse(word: Word, *, may_exit: bool) -> None:
    if exact_uniform_fields(word) is None:
        raise UnsupportedKernelError(because("graft-snippet", what=f"the instruction {word.opcode:#05x}"))
    if word.operation in CONTROL_FLOW and not (may_exit and word.opcode == EXIT and not word.is_unconditional):
        raise UnsupportedKernelError(because("graft-snippet", what="control flow"))
    if constant_bank(word) is not None and is_indexed_constant(word):
        raise UnsupportedKernelError(because("graft-snippet", what="a constant at an offset in a register"))


def _mark_move(word: Word, numbers: Mapping[int, int], carried: Sequence[KeptRegister], arch: int) -> Word | None:
    """Return the move that replaces a mark."""
    if not is_mark(word):
        return None
    index = mark_number(word) - 1
    register = carried[index]
    if word.operation == LOAD_MARK:
        return _move_word(word, KeptRegister(False, word.rd), register)
    if word.ra != RZ or not word.is_uniform_operand:
        raise UnsupportedKernelError(because("graft-lanes"))
    return _move_word(word, register, KeptRegister(True, numbers[uniform_register_at(word, _STORED_REGISTER, arch)]))


def _move_word(mark: Word, destination: KeptRegister, source: KeptRegister) -> Word:
    """Return the move that replaces a mark. A uniform register can only be set from a uniform one."""
    if destination.is_uniform:
        move = _with_opcode(mark, _UMOV)
    else:
        move = _with_opcode(mark, MOV_UNIFORM if source.is_uniform else MOV).with_field(*BYTE_MASK, ALL_BYTES)
    move = move.with_field(*DESTINATION, destination.number).with_field(*SOURCE_B, source.number)
    return move.with_field(*UNIFORM_OPERAND, source.is_uniform)


def _with_opcode(word: Word, opcode: int) -> Word:
    """Return an instruction with the guard and waits of ``word``, whose result the next instruction can read."""
    move = Word(opcode).with_field(*GUARD, word.field(*GUARD)).with_wait_mask(word.wait_mask)
    return move.with_stall(max(_MOVE_STALL, word.stall)).with_write_barrier(NO_BARRIER).with_read_barrier(NO_BARRIER)


def _with_store_barriers(words: Sequence[Word]) -> list[Word]:
    """Stores with a barrier for their operands, so that who comes next can wait until these were read."""
    return [
        word.with_read_barrier(OPERAND_BARRIER)
        if word.operation in _STORES and word.read_barrier == NO_BARRIER and word.write_barrier == NO_BARRIER
        else word
        for word in words
    ]
