"""Code of a snippet for an instruction in the middle of a kernel, and its form in that kernel.

A ``trampoline`` runs it. ptxas assembled the snippet as a kernel of its own: its registers are shifted above those of
the kernel, its parameters to those of the probe, and its marks become moves (``MarkValue``).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass import lane_registers
from tui_probe.sass.nv_info import FLAG_FORMAT
from tui_probe.sass.snippets import LOAD_MARK, STORE_MARK, is_mark, mark_number
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.uniform_registers import (
    exact_uniform_fields,
    named_uniform_registers,
    to_uniform_word,
    with_uniform_registers,
)
from tui_probe.sass.words import (
    ALL_BYTES,
    BARRIER_COUNT,
    BRA,
    BSSY,
    BSYNC,
    BYTE_MASK,
    DEPBAR,
    DEPBAR_BARRIER,
    DEPBAR_GROUPS,
    DESTINATION,
    EXIT,
    GUARD,
    IMMEDIATE,
    LDCU,
    MOV,
    MOV_NUMBER,
    MOV_UNIFORM,
    NO_BARRIER,
    OPERAND_BARRIER,
    RZ,
    SOURCE_B,
    STACK_POINTER,
    ULDC,
    UNIFORM_OPERAND,
    WORD_BYTES,
    Word,
    branch_target,
    branch_word,
    constant_bank,
    constant_offset,
    new_word,
    operation_of,
    with_constant_offset,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.binaries.cubin import Cubin
    from tui_probe.sass.nv_info import Attribute

SHORT_STALL: Final = 8
"""Cycles after which a result of fixed latency can be used in a computation."""

_MOVE: Final = new_word(MOV, SHORT_STALL).with_field(*BYTE_MASK, ALL_BYTES)
_MOVE_NUMBER: Final = new_word(MOV_NUMBER, SHORT_STALL).with_field(*BYTE_MASK, ALL_BYTES)
_MOVE_UNIFORM: Final = (
    new_word(MOV_UNIFORM, SHORT_STALL).with_field(*BYTE_MASK, ALL_BYTES).with_field(*UNIFORM_OPERAND, 1)
)
"""Moves of nothing to R0: a kernel gets thousands."""
_STORES: Final = frozenset({0x186, 0x18E})
"""STG, RED."""
_CONVERGENT: Final = frozenset({0x006, 0x086, 0x189, 0x1A1, 0x1C4})
"""VOTE, VOTEU, SHFL, MATCH, REDUX: of all lanes that are there at the same time."""
_UNIFORM_LOADS: Final = frozenset({ULDC, LDCU})
_WIDTH, _WIDTH_OF_PAIR = (73, 3), 5
_MOVE_BARRIER: Final = 0
"""Barrier of a snippet that a move to a uniform register releases before sm_90."""
_MAX_CACHED: Final = 64
"""Snippets whose words in a kernel are cached; a kernel has about twenty."""
_MOVE_STALL: Final = 2
"""Cycles between moves that do not need each other."""


@dataclass(frozen=True, slots=True)
class MarkValue:
    """Value of a mark: a ``register``, a ``uniform`` one, or a ``number``."""

    register: int | None = None
    uniform: int | None = None
    number: int = 0

    def move(self, destination: int) -> Word:
        """Return the instruction that moves it into a register."""
        if self.register is not None:
            word = _MOVE.with_field(*SOURCE_B, self.register)
        elif self.uniform is not None:
            word = _MOVE_UNIFORM.with_field(*SOURCE_B, self.uniform)
        else:
            word = _MOVE_NUMBER.with_field(*IMMEDIATE, self.number & 0xFFFFFFFF)
        return word.with_field(*DESTINATION, destination)


@dataclass(frozen=True, slots=True, eq=False)
class FreeRegisters:
    """Registers, predicates and barriers of a kernel that its snippets use. Mappings are from a snippet's number to
    the kernel's.
    """

    arch: int
    base: int
    """Offset of a kernel's first parameter in bank 0."""
    probe_base: int
    """Offset of the probe's first parameter in bank 0."""
    first_register: int
    """The register that stands for R0 of a snippet."""
    scratch: int
    """A register outside the snippets', for the saved predicates; the next one holds the flag, if there is one."""
    uniform: Mapping[int, int]
    """First registers of pairs of uniform registers."""
    predicates: Mapping[int, int]
    """Predicates of the uniform path."""
    barriers: tuple[int, ...]
    """The scoreboard barrier that stands for each barrier of a snippet."""
    predicate_barriers: int
    """Mask of the scoreboard barriers that release predicates: waited for before predicates are saved."""
    convergence: int
    """The convergence barrier of a trampoline."""
    convergence_barriers: Mapping[int, int]
    """Convergence barriers inside snippets."""
    registers: int
    """Number of registers that a kernel must request."""


@dataclass(frozen=True, slots=True, eq=False)
class InlineCode:
    """Code of a snippet for an instruction in the middle of a kernel, as ptxas assembled it."""

    arch: int
    words: tuple[Word, ...]
    base: int
    probe_base: int
    flags: tuple[Attribute, ...] = ()
    """Attributes that the driver needs for it."""

    @classmethod
    def from_cubin(cls, cubin: Cubin, name: str, leading_bytes: int, *, may_exit: bool = False) -> InlineCode:
        """Read the code of kernel ``name``, whose first ``leading_bytes`` bytes of parameters are not the probe's.

        ``may_exit``: lanes may exit before its end, as at exits of the kernel. Raises UnsupportedKernelError for code
        that cannot be grafted.
        """
        target = GraftTarget.from_cubin(cubin, name)
        code = target.words[: target.exits()[-1] // WORD_BYTES]
        if code and code[0].rd == STACK_POINTER and constant_bank(code[0]) == 0:
            code = code[1:]
        end = len(code) * WORD_BYTES
        for word in code:
            _refuse_unsupported(word)
        exit_operation = operation_of(EXIT)
        code_words = tuple(
            word
            if may_exit or word.operation != exit_operation
            else branch_word(target.arch, index * WORD_BYTES, end, word)
            for index, word in enumerate(code)
        )
        flags = tuple(attribute for attribute in target.attributes if attribute.format == FLAG_FORMAT)
        inline = cls(target.arch, _without_waits_for_marks(code_words), target.base, target.base + leading_bytes, flags)
        inline.refuse_convergence()
        return inline

    @property
    def diverges(self) -> bool:
        """True if lanes may diverge in it."""
        return any(word.operation == operation_of(BRA) for word in self.words)

    @property
    def registers(self) -> int:
        """Number of registers it needs: up to the highest that it names, which may be the first of a pair."""
        named_ends = [lane_registers.registers_end(word) for word in self.words if not is_mark(word)]
        mark_ends = [word.rd + 1 for word in self.words if word.operation == LOAD_MARK and word.rd != RZ]
        return max([*named_ends, *mark_ends], default=1)

    def uniform_pairs(self) -> set[int]:
        """Return the even numbers of the uniform register pairs that it uses."""
        return {
            number & ~1
            for word in self.words
            if not is_mark(word)
            for number in named_uniform_registers(word, self.arch) or ()
        }

    def convergence_barriers(self) -> list[int]:
        """Return the convergence barriers at which its lanes reconverge before its end."""
        return lane_registers.snippet_barriers(self.words)

    def uniform_predicates(self) -> list[int]:
        """Return the predicates of the uniform path that it writes."""
        return lane_registers.snippet_predicates(self.words)

    def refuse_convergence(self) -> None:
        """Raise UnsupportedKernelError if lanes would have to reconverge before the end."""
        end = len(self.words) * WORD_BYTES
        for index, word in enumerate(self.words):
            if word.operation != operation_of(BRA):
                continue
            destination = branch_target(self.arch, index * WORD_BYTES, word)
            if not index * WORD_BYTES < destination <= end:
                raise UnsupportedKernelError(because("graft-snippet", what="a loop"))
            if any(word.operation in _CONVERGENT for word in self.words[destination // WORD_BYTES :]):
                raise UnsupportedKernelError(because("graft-snippet", what="a branch from which lanes return"))

    def place(self, free: FreeRegisters, sources: Mapping[int, MarkValue]) -> list[Word]:
        """Return its words in a kernel. ``sources``: the value of each mark. Raises UnsupportedKernelError."""
        if free.base != self.base:
            raise UnsupportedKernelError(because("graft-base", found=free.base, expected=self.base))
        placed_words = [
            _with_barriers(self._mark_move(word, free, sources), free.barriers) if fixed is None else fixed
            for word, fixed in zip(self.words, _fixed_words(self, free), strict=True)
        ]
        for index, (word, following) in enumerate(itertools.pairwise(self.words)):
            if following.operation == STORE_MARK:  # what it stores may be read by its move earlier than by a store
                placed_words[index] = placed_words[index].with_stall(max(placed_words[index].stall, SHORT_STALL))
            elif word.operation == LOAD_MARK and following.operation == LOAD_MARK:
                placed_words[index] = placed_words[index].with_stall(_MOVE_STALL)
        return placed_words

    def fixed_word(self, word: Word, free: FreeRegisters, uniform: Mapping[int, int]) -> Word:
        """Return one of its words, no mark, as it is everywhere in a kernel.

        ``uniform`` has the kernel's uniform register for each of a snippet.
        """
        word = with_uniform_registers(word, uniform, self.arch)
        word = lane_registers.with_barrier(
            lane_registers.with_uniform_predicates(word, free.predicates), free.convergence_barriers
        )
        word = lane_registers.with_registers_moved(word, free.first_register)
        if constant_bank(word) == 0 and (offset := constant_offset(word)) >= self.probe_base:
            word = with_constant_offset(word, offset + free.probe_base - self.probe_base)
        if word.operation in _STORES and word.read_barrier == NO_BARRIER:
            word = word.with_read_barrier(OPERAND_BARRIER)
        return _with_barriers(word, free.barriers)

    def _mark_move(self, word: Word, free: FreeRegisters, sources: Mapping[int, MarkValue]) -> Word:
        """Return the move that replaces a mark: into the snippet's register, or into the one that is kept."""
        source = sources[mark_number(word)]
        if word.operation == LOAD_MARK:
            move = source.move(word.rd + free.first_register)
        else:
            stored_register = RZ if word.rb == RZ else word.rb + free.first_register
            move = _store_move(stored_register, source, free.arch)
        move = move.with_field(*GUARD, word.field(*GUARD)).with_wait_mask(word.wait_mask)
        return move.with_stall(max(SHORT_STALL, move.stall, word.stall))


def _store_move(register: int, destination: MarkValue, arch: int) -> Word:
    """Return the move of a register to where a mark keeps it."""
    if destination.uniform is not None:
        return to_uniform_word(arch, destination.uniform, register, _MOVE_BARRIER)
    assert destination.register is not None
    return MarkValue(register=register).move(destination.register)


@lru_cache(maxsize=_MAX_CACHED)
def _fixed_words(code: InlineCode, free: FreeRegisters) -> list[Word | None]:
    """Return the relocated words, None per mark. Cached: a kernel has the same snippet at many instructions."""
    uniform = {number: free.uniform[number & ~1] | number & 1 for pair in free.uniform for number in (pair, pair + 1)}
    return [None if is_mark(word) else code.fixed_word(word, free, uniform) for word in code.words]


def _with_barriers(word: Word, barriers: Sequence[int]) -> Word:
    if word.write_barrier != NO_BARRIER:
        word = word.with_write_barrier(barriers[word.write_barrier])
    if word.read_barrier != NO_BARRIER:
        word = word.with_read_barrier(barriers[word.read_barrier])
    if word.operation == DEPBAR:
        word = word.with_field(*DEPBAR_BARRIER, barriers[word.field(*DEPBAR_BARRIER)])
    waits, mask = word.wait_mask, 0
    for number in range(BARRIER_COUNT) if waits else ():
        if waits >> number & 1:
            mask |= 1 << barriers[number]
    return word if mask == waits else word.with_wait_mask(mask)


def _without_waits_for_marks(words: Sequence[Word]) -> tuple[Word, ...]:
    """Remove waits for barriers that only marks release: pending instructions of the kernel may hold these."""
    real = 1 << OPERAND_BARRIER
    for word in words:
        if not is_mark(word):
            real |= sum(1 << barrier for barrier in {word.write_barrier, word.read_barrier} - {NO_BARRIER})
    return tuple(word.with_wait_mask(word.wait_mask & real) for word in words)


def _refuse_unsupported(word: Word) -> None:
    if is_mark(word) or word.opcode in (EXIT, BSSY, BSYNC) or word.operation == operation_of(BRA):
        if word.operation == operation_of(EXIT) and word.is_unconditional:
            raise UnsupportedKernelError(because("graft-snippet", what="several ends"))
        return
    if exact_uniform_fields(word) is None or lane_registers.register_fields(word) is None:
        raise UnsupportedKernelError(because("graft-snippet", what=f"the instruction {word.opcode:#05x}"))
    if word.operation == DEPBAR and word.field(*DEPBAR_GROUPS):
        raise UnsupportedKernelError(because("graft-snippet", what="a DEPBAR that waits for several barriers"))
    if word.operation in _UNIFORM_LOADS and word.field(*_WIDTH) > _WIDTH_OF_PAIR:
        raise UnsupportedKernelError(because("graft-snippet", what="a long constant"))
