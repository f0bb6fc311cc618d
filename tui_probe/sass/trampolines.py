"""Trampolines: code around one instruction of a kernel, which then continues behind it.

A branch replaces the instruction, and waits for what that waits for. Behind the kernel's code::

    NOP                   until predicates that were written last can be read
    P2R  saved, PR        all seven: a snippet writes some, which ones only ptxas knows
    MOV  flag, 0; @P MOV flag, 1                 where a predicate says something of the access
    BSSY B, end           only where a guard or a branch in the snippet parts lanes
    @!P BRA end           the lanes that the instruction is not for
    the snippet           its registers above those of the kernel, its marks replaced by moves; several run one after
                          the other, with all from BSSY to R2P for each in which lanes part
  end: BSYNC B            here they meet again. Without this a warp would stay in parts to the end of the kernel,
                          and uniform registers would be advanced once for each part
    R2P  PR, saved        waits for all that the snippet began
    the instruction       with its guard and barriers; its ``.reuse`` holds for the next instruction only, so it goes
    BRA  back

What else could go wrong, and why it does not: the lanes that come are those that came to the instruction, and they
leave together, so ``WARPSYNC``, ``BSYNC`` and votes of the kernel see the same lanes. Operands that ``.reuse`` of the
instruction before keeps are in registers that the snippet never writes. A branch to the instruction finds the branch.
What the kernel has under way writes registers of its own; a barrier that both use makes one wait longer, never shorter,
and the least used are taken. What writes predicates behind a barrier is waited for before they are saved, since
what is put back would else replace it. Uniform registers and predicates are such that the kernel uses nowhere.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass import lane_registers
from tui_probe.sass.nv_info import FLAG_FORMAT
from tui_probe.sass.snippets import LOAD_MARK, STORE_MARK, is_mark, mark_number
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.uniform_registers import exact_uniform_fields, named_uniform_registers, with_uniform_registers
from tui_probe.sass.words import (
    ALL_BARRIERS,
    ALWAYS,
    EXIT,
    NO_BARRIER,
    RZ,
    WORD_BYTES,
    Word,
    branch_target,
    branch_word,
    to_uniform_word,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tui_probe.binaries.cubin import Cubin
    from tui_probe.sass.nv_info import Attribute

_STORES: Final = frozenset({0x186, 0x18E})
"""STG, RED."""
_BRA: Final = 0x147
_EXIT: Final = EXIT & 0x1FF
_CONSTANT_FORMS: Final = frozenset({3, 5})
_BANK_AT, _BANK_BITS = 54, 5
_CONSTANT_AT, _CONSTANT_BITS = 38, 16
_STACK_POINTER: Final = 1
_MOST_PLACED: Final = 64
"""Snippets whose words in a kernel are remembered; a kernel has some twenty."""
_UNIFORM_LOADS: Final = frozenset({0x0B9, 0x1AC})
"""ULDC, LDCU."""
_WIDTH, _WIDTH_OF_PAIR = (73, 3), 5
_CONVERGENT: Final = frozenset({0x006, 0x086, 0x189, 0x1A1, 0x1C4})
"""VOTE, VOTEU, SHFL, MATCH, REDUX: of all lanes that are there at the same time."""
_OPERAND_BARRIER: Final = 5
_BARRIERS: Final = 6

_GUARD = 12, 4
_DESTINATION = 16, 8
_SOURCE_A = 24, 8
_SOURCE_B = 32, 8
_IMMEDIATE = 32, 32
_CONVERGENCE_BARRIER = 16, 4
_BYTE_MASK, _ALL_BYTES = (72, 4), 0xF
_HAS_UNIFORM_SOURCE = 91, 1

_MOV: Final = 0x202
_MOV_NUMBER: Final = 0x802
_MOV_UNIFORM: Final = 0xC02
_P2R: Final = 0x803
_R2P: Final = 0x804
_NOP: Final = 0x918
_BSSY: Final = 0x945
_BSYNC: Final = 0x941
_RECONVERGENT: Final = 73
_RECONVERGENT_FROM: Final = 100
_SECOND_PREDICATE: Final = 87
_PREDICATES: Final = 0x7F
_SETTLED_STALL: Final = 13
"""Cycles after which a predicate or a register that a fixed-latency instruction wrote can be read by any other."""
_SHORT_STALL: Final = 8
"""Cycles after which such a value can be used in a computation."""
_MOVE_STALL: Final = 2
"""Cycles between moves that do not need each other."""


@dataclass(frozen=True, slots=True)
class MarkValue:
    """Value of a mark: a ``register``, a ``uniform`` one, or a ``number``."""

    register: int | None = None
    uniform: int | None = None
    number: int = 0

    def move(self, to: int) -> Word:
        """An instruction that puts it into a register."""
        if self.register is not None:
            return (
                _new_word(_MOV, _SHORT_STALL)
                .with_field(*_DESTINATION, to)
                .with_field(*_SOURCE_B, self.register)
                .with_field(*_BYTE_MASK, _ALL_BYTES)
            )
        if self.uniform is not None:
            word = (
                _new_word(_MOV_UNIFORM, _SHORT_STALL).with_field(*_DESTINATION, to).with_field(*_SOURCE_B, self.uniform)
            )
            return word.with_field(*_BYTE_MASK, _ALL_BYTES).with_field(*_HAS_UNIFORM_SOURCE, 1)
        word = (
            _new_word(_MOV_NUMBER, _SHORT_STALL)
            .with_field(*_DESTINATION, to)
            .with_field(*_IMMEDIATE, self.number & 0xFFFFFFFF)
        )
        return word.with_field(*_BYTE_MASK, _ALL_BYTES)


@dataclass(frozen=True, slots=True, eq=False)
class FreeRegisters:
    """Registers, predicates and barriers of a kernel that its snippets use. Mappings are from a snippet's number to
    the kernel's.
    """

    arch: int
    base: int
    """Offset of a kernel's first parameter in bank 0."""
    parameters_at: int
    """Offset of the probe's first parameter in bank 0."""
    first: int
    """The register that stands for R0 of a snippet."""
    scratch: int
    """A register outside the snippets', for the saved predicates; the next one holds the flag, if there is one."""
    uniform: Mapping[int, int]
    """First registers of pairs of uniform registers."""
    predicates: Mapping[int, int]
    """Predicates of the uniform path."""
    barriers: tuple[int, ...]
    """The scoreboard barrier that stands for each barrier of a snippet."""
    late: int
    """Mask of the scoreboard barriers that release predicates: waited for before predicates are saved."""
    convergence: int
    """The convergence barrier of a trampoline."""
    convergence_barriers: Mapping[int, int]
    """Convergence barriers inside snippets."""
    registers: int
    """Number of registers that a kernel must request."""


@dataclass(frozen=True, slots=True, eq=False)
class InlineCode:
    """The code of a snippet for a place in the middle of a kernel, as ptxas made it."""

    arch: int
    words: tuple[Word, ...]
    base: int
    parameters_at: int
    flags: tuple[Attribute, ...] = ()
    """Attributes that the driver needs for it."""

    @classmethod
    def of(cls, cubin: Cubin, name: str, leading: int, *, leaves: bool = False) -> InlineCode:
        """Read the code of kernel ``name``, whose first ``leading`` bytes of parameters are not the probe's.

        ``leaves``: it is for exits, where lanes may end before its end. Raises UnsupportedKernelError for code that
        cannot be taken.
        """
        target = GraftTarget.of(cubin, name)
        code = target.words[: target.exits()[-1] // WORD_BYTES]
        if code and code[0].rd == _STACK_POINTER and _constant_offset(code[0]) is not None:
            code = code[1:]
        end = len(code) * WORD_BYTES
        for word in code:
            _refuse_unsupported(word)
        made = tuple(
            branch_word(target.arch, index * WORD_BYTES, end, word) if word.operation == _EXIT and not leaves else word
            for index, word in enumerate(code)
        )
        flags = tuple(attribute for attribute in target.attributes if attribute.format == FLAG_FORMAT)
        inline = cls(target.arch, _without_waits_for_marks(made), target.base, target.base + leading, flags)
        inline.refuse_convergence()
        return inline

    @property
    def diverges(self) -> bool:
        """True if lanes may part in it."""
        return any(word.operation == _BRA for word in self.words)

    @property
    def registers(self) -> int:
        """Number of registers it needs: up to the highest that it names, or the one behind it where that may be a
        pair's.
        """
        named_ = [lane_registers.registers_end(word) for word in self.words if not is_mark(word)]
        loaded = [word.rd + 1 for word in self.words if word.operation == LOAD_MARK and word.rd != RZ]
        return max([*named_, *loaded], default=1)

    def uniform_pairs(self) -> set[int]:
        """The even numbers of the pairs of uniform registers that it uses."""
        return {
            number & ~1
            for word in self.words
            if not is_mark(word)
            for number in named_uniform_registers(word, self.arch) or ()
        }

    def convergence_barriers(self) -> list[int]:
        """The convergence barriers at which its lanes meet again before its end."""
        return lane_registers.snippet_barriers(self.words)

    def uniform_predicates(self) -> list[int]:
        """The predicates of the uniform path that it writes."""
        return lane_registers.snippet_predicates(self.words)

    def refuse_convergence(self) -> None:
        """Raises UnsupportedKernelError where lanes that have parted would have to meet again before the end."""
        end = len(self.words) * WORD_BYTES
        for index, word in enumerate(self.words):
            if word.operation != _BRA:
                continue
            to = branch_target(self.arch, index * WORD_BYTES, word)
            if not index * WORD_BYTES < to <= end:
                raise UnsupportedKernelError(because("graft-snippet", what="a loop"))
            if any(word.operation in _CONVERGENT for word in self.words[to // WORD_BYTES :]):
                raise UnsupportedKernelError(because("graft-snippet", what="a branch that lanes come back from"))

    def placed(self, free: FreeRegisters, sources: Mapping[int, MarkValue]) -> list[Word]:
        """Return its words in a kernel. ``sources``: the value of each mark. Raises UnsupportedKernelError."""
        if free.base != self.base:
            raise UnsupportedKernelError(because("graft-base", found=free.base, expected=self.base))
        made = [
            _with_barriers(self._mark(word, free, sources), free.barriers) if fixed is None else fixed
            for word, fixed in zip(self.words, _fixed_words(self, free), strict=True)
        ]
        for index, (word, following) in enumerate(itertools.pairwise(self.words)):
            if following.operation == STORE_MARK:  # what it stores may be read by its move earlier than by a store
                made[index] = made[index].with_stall(max(made[index].stall, _SHORT_STALL))
            elif word.operation == LOAD_MARK and following.operation == LOAD_MARK:
                made[index] = made[index].with_stall(_MOVE_STALL)
        return made

    def fixed_word(self, word: Word, free: FreeRegisters) -> Word:
        """One of its words, no mark, in a kernel: the same wherever it is there."""
        numbers = {
            number: free.uniform[number & ~1] | number & 1 for pair in free.uniform for number in (pair, pair + 1)
        }
        word = with_uniform_registers(word, numbers, self.arch)
        word = lane_registers.with_barrier(
            lane_registers.with_uniform_predicates(word, free.predicates), free.convergence_barriers
        )
        word = lane_registers.with_registers_moved(word, free.first)
        offset = _constant_offset(word)
        if offset is not None and offset >= self.parameters_at:
            word = word.with_field(_CONSTANT_AT, _CONSTANT_BITS, offset + free.parameters_at - self.parameters_at)
        if word.operation in _STORES and word.read_barrier == NO_BARRIER:
            word = word.with_read_barrier(_OPERAND_BARRIER)
        return _with_barriers(word, free.barriers)

    def _mark(self, word: Word, free: FreeRegisters, sources: Mapping[int, MarkValue]) -> Word:
        """The move instead of a mark: into the snippet's register, or into the one that is kept."""
        source = sources[mark_number(word)]
        if word.operation == LOAD_MARK:
            move = source.move(word.rd + free.first)
        else:
            stored = RZ if word.rb == RZ else word.rb + free.first
            move = _stored(stored, source, free.arch)
        move = move.with_field(*_GUARD, word.field(*_GUARD)).with_wait_mask(word.wait_mask)
        return move.with_stall(max(_SHORT_STALL, move.stall, word.stall))


def _stored(register: int, to: MarkValue, arch: int) -> Word:
    """Return the move of a register to where a mark keeps it."""
    if to.uniform is not None:
        return to_uniform_word(arch, to.uniform, register)
    assert to.register is not None
    return MarkValue(register=register).move(to.register)


PlacedSnippet = tuple[InlineCode, "Mapping[int, MarkValue]"]
"""Code of a snippet, and what its marks stand for."""


@lru_cache(maxsize=_MOST_PLACED)
def _fixed_words(code: InlineCode, free: FreeRegisters) -> list[Word | None]:
    """The words of a snippet in a kernel, None for each mark: a kernel has the same snippet at many instructions."""
    return [None if is_mark(word) else code.fixed_word(word, free) for word in code.words]


def trampoline(
    inline: Sequence[PlacedSnippet],
    displaced: Word,
    free: FreeRegisters,
    reads: int = ALWAYS,
    block_code: PlacedSnippet | None = None,
) -> list[Word]:
    """Return the code that runs before an instruction. ``reads`` is the predicate that the mark of the flag reports.
    ``block_code`` is code for all lanes that come by, no matter what the instruction's guard says.
    """
    if not inline and block_code is None:
        return []
    code = [_new_word(_NOP, _SETTLED_STALL), _save_predicates(free)]
    if reads != ALWAYS:
        code += [MarkValue(number=0).move(free.scratch + 1), MarkValue(number=1).move(free.scratch + 1)]
        code[-1] = code[-1].with_field(*_GUARD, reads)
    begun = _entry_words(block_code, free)
    code += begun
    for number, snippets in enumerate(_snippets_together(inline)):
        if number:  # the next one has the same registers, and predicates that say where it runs
            code.append(_restore_predicates(free, _pending_barriers(begun)))
            begun = []
        body = [word for snippet, sources in snippets for word in snippet.placed(free, sources)]
        diverges = not displaced.is_unconditional or snippets[-1][0].diverges
        code += _converging(body, displaced, free) if diverges else body
        begun = [*begun, *body]
    code.append(_restore_predicates(free, _pending_barriers(begun)))
    return code


def _snippets_together(inline: Sequence[PlacedSnippet]) -> list[list[PlacedSnippet]]:
    """The snippets in groups that run one behind the other. Where lanes part in one they must meet before the next."""
    groups: list[list[PlacedSnippet]] = []
    for snippet in inline:
        if not groups or groups[-1][-1][0].diverges:
            groups.append([])
        groups[-1].append(snippet)
    return groups


def _converging(body: Sequence[Word], displaced: Word, free: FreeRegisters) -> list[Word]:
    """A body for the lanes that execute the displaced instruction. All lanes meet again behind it."""
    guarded = [] if displaced.is_unconditional else [_skip_branch(free, displaced, len(body))]
    return [_begin_convergence(free, len(body) + len(guarded)), *guarded, *body, _end_convergence(free)]


def _entry_words(block_code: PlacedSnippet | None, free: FreeRegisters) -> list[Word]:
    if block_code is None:
        return []
    code, sources = block_code
    if code.diverges:
        raise UnsupportedKernelError(because("graft-snippet", what="a branch where a basic block begins"))
    return code.placed(free, sources)


def opening_words(inline: InlineCode, free: FreeRegisters, sources: Mapping[int, MarkValue]) -> list[Word]:
    """Return the code that runs before the first instruction, where no predicate holds anything yet. Lanes that part
    meet again, and what it began is waited for: the next snippet has the same registers.
    """
    code = inline.placed(free, sources)
    if pending := _pending_barriers(code):
        code.append(_new_word(_NOP, _SETTLED_STALL).with_wait_mask(pending))
    return [_begin_convergence(free, len(code)), *code, _end_convergence(free)] if inline.diverges else code


def flag_value(free: FreeRegisters) -> MarkValue:
    """Return the value of the flag's mark."""
    return MarkValue(register=free.scratch + 1)


def least_used_barriers(words: Iterable[Word]) -> tuple[int, ...]:
    """Return, for each barrier of a snippet, the kernel's barrier that stands for it: the least used first."""
    uses = Counter(dict.fromkeys(range(_BARRIERS), 0))
    for word in words:
        uses.update(barrier for barrier in (word.write_barrier, word.read_barrier) if barrier < _BARRIERS)
    order = sorted(uses, key=lambda number: (uses[number], -number))
    # ptxas gives numbers from 0 on, and its operands wait for the last one here.
    return (*order[: _BARRIERS - 1], order[0])


def _pending_barriers(words: Sequence[Word]) -> int:
    """The barriers of what may still be under way at the end: what every lane waited for is not."""
    mask, together = 0, True
    for word in words:
        if together:
            mask &= ~word.wait_mask
        together = together and word.operation != _BRA
        mask |= sum(1 << barrier for barrier in {word.write_barrier, word.read_barrier} - {NO_BARRIER})
    return mask & ALL_BARRIERS


def _with_barriers(word: Word, barriers: Sequence[int]) -> Word:
    if word.write_barrier != NO_BARRIER:
        word = word.with_write_barrier(barriers[word.write_barrier])
    if word.read_barrier != NO_BARRIER:
        word = word.with_read_barrier(barriers[word.read_barrier])
    mask = 0
    for number in range(_BARRIERS):
        if word.wait_mask >> number & 1:
            mask |= 1 << barriers[number]
    return word.with_wait_mask(mask)


def _without_waits_for_marks(words: Sequence[Word]) -> tuple[Word, ...]:
    """Remove waits for barriers that only marks release: pending instructions of the kernel may hold these."""
    real = 1 << _OPERAND_BARRIER
    for word in words:
        if not is_mark(word):
            real |= sum(1 << barrier for barrier in {word.write_barrier, word.read_barrier} - {NO_BARRIER})
    return tuple(word.with_wait_mask(word.wait_mask & real) for word in words)


def _refuse_unsupported(word: Word) -> None:
    if is_mark(word) or word.opcode in (EXIT, _BSSY, _BSYNC) or word.operation == _BRA:
        if word.operation == _EXIT and word.is_unconditional:
            raise UnsupportedKernelError(because("graft-snippet", what="several ends"))
        return
    if exact_uniform_fields(word) is None or lane_registers.register_fields(word) is None:
        raise UnsupportedKernelError(because("graft-snippet", what=f"the instruction {word.opcode:#05x}"))
    if word.operation in _UNIFORM_LOADS and word.field(*_WIDTH) > _WIDTH_OF_PAIR:
        raise UnsupportedKernelError(because("graft-snippet", what="a long constant"))


def _constant_offset(word: Word) -> int | None:
    """The offset in bank 0 of the constant that a word reads; None for one that reads none there."""
    if word.form not in _CONSTANT_FORMS or word.field(_BANK_AT, _BANK_BITS):
        return None
    return word.field(_CONSTANT_AT, _CONSTANT_BITS)


def _new_word(opcode: int, stall: int) -> Word:
    word = Word(opcode).guarded(ALWAYS).with_stall(stall)
    return word.with_write_barrier(NO_BARRIER).with_read_barrier(NO_BARRIER)


def _save_predicates(free: FreeRegisters) -> Word:
    word = (
        _new_word(_P2R, _SETTLED_STALL)
        .with_field(*_DESTINATION, free.scratch)
        .with_field(*_SOURCE_A, RZ)
        .with_field(*_IMMEDIATE, _PREDICATES)
    )
    return word.with_wait_mask(free.late)


def _restore_predicates(free: FreeRegisters, mask: int) -> Word:
    word = _new_word(_R2P, _SETTLED_STALL).with_field(*_SOURCE_A, free.scratch).with_field(*_IMMEDIATE, _PREDICATES)
    return word.with_wait_mask(mask & ALL_BARRIERS)


def _begin_convergence(free: FreeRegisters, words: int) -> Word:
    word = (
        _new_word(_BSSY, 5)
        .with_field(*_CONVERGENCE_BARRIER, free.convergence)
        .with_field(*_IMMEDIATE, words * WORD_BYTES)
    )
    return _as_reconvergent(word.with_field(_SECOND_PREDICATE, 3, ALWAYS), free.arch)


def _end_convergence(free: FreeRegisters) -> Word:
    word = (
        _new_word(_BSYNC, 5)
        .with_field(*_CONVERGENCE_BARRIER, free.convergence)
        .with_field(_SECOND_PREDICATE, 3, ALWAYS)
    )
    return _as_reconvergent(word, free.arch)


def _as_reconvergent(word: Word, arch: int) -> Word:
    return word.with_field(_RECONVERGENT, 1, int(arch >= _RECONVERGENT_FROM))


def _skip_branch(free: FreeRegisters, displaced: Word, words: int) -> Word:
    """A branch over the body of the lanes that the instruction is not for."""
    word = branch_word(free.arch, 0, (words + 1) * WORD_BYTES)
    return word.guarded(displaced.guard, negated=not displaced.guard_negated)
