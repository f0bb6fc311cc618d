"""Machine code that ptxas made of a snippet, and what it becomes in a kernel that it is grafted into.

The snippet is the code of a kernel of its own. What is left of it: no stack pointer, no last ``EXIT``, moves in the
places of marks, its parameters where they lie behind those of the kernel, and uniform registers that the kernel does
not use. It must run from its first to its last instruction: of control flow only an ``EXIT`` with a guard is allowed,
and that only in code at ways out. So a warp stays together, and no convergence barrier is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass import nv_info
from tui_probe.sass.branches import EXIT
from tui_probe.sass.constants import bank_of, is_indexed, offset_of, with_offset
from tui_probe.sass.nv_info import read_attributes
from tui_probe.sass.target import INFO, Target
from tui_probe.sass.uniform import FIRST, REGISTERS, exact_fields, named, renamed
from tui_probe.sass.words import ALL_BARRIERS, NO_BARRIER, RZ, Word

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tui_probe.sass.cubin import Cubin

STACK_POINTER: Final = 1

_CONTROL_FLOW: Final = range(0x140, 0x160)
_STORE_MARK: Final = 0x188
_LOAD_MARK: Final = 0x184
_MARK_AT, _MARK_BITS = 40, 24
_STORES: Final = frozenset({0x185, 0x186, 0x18E, 0x1A6, 0x1A8, 0x1A9, 0x18A, 0x18B, 0x1A1, 0x1A2, 0x1A3})
_S2UR: Final = 0x1C3
_OPERAND_BARRIER: Final = 5
_MOVE_STALL: Final = 12
_UMOV: Final = 0xC82
_MOV_UNIFORM: Final = 0xC02
_UNIFORM_OPERAND: Final = 91
_ALL_BYTES: Final = 0xF


@dataclass(frozen=True, slots=True)
class Snippet:
    """The code of a snippet. ``base`` and ``parameters_at`` say where its kernel's parameters, and the probe's among
    them, lie in bank 0; ``registers`` are those that its kernel needs.
    """

    arch: int
    words: tuple[Word, ...]
    base: int
    parameters_at: int
    registers: int

    @classmethod
    def of(cls, cubin: Cubin, name: str, leading: int, *, leaves: bool) -> Snippet:
        """The code of kernel ``name``, whose first ``leading`` bytes of parameters are not the probe's.

        ``leaves`` allows lanes to leave before its end. Raises UnsupportedKernelError for code that cannot be taken.
        """
        target = Target.of(cubin, name)
        _refuse_stack(cubin)
        words = target.words[: target.exits()[-1] // 16]
        if words and words[0].rd == STACK_POINTER and _parameter(words[0]) is not None:
            words = words[1:]
        for word in words:
            _refuse(word, leaves=leaves)
        return cls(target.arch, words, target.base, target.base + leading, target.registers)

    def uniform_pairs(self) -> list[int]:
        """The even numbers of the pairs of uniform registers that it uses."""
        pairs = {number & ~1 for word in self.words for number in named(word, self.arch) or ()}
        return sorted(pairs)

    def placed(self, base: int, parameters_at: int, uniform: Mapping[int, int], carried: Sequence[int]) -> list[Word]:
        """Its words in a kernel whose parameters begin at ``base`` and the probe's at ``parameters_at``.

        ``uniform`` says which even register stands for each of ``uniform_pairs``; ``carried`` are those that keep what
        lives from the entry to the exits. Raises UnsupportedKernelError if the kernel is for another ABI.
        """
        if base != self.base:
            raise UnsupportedKernelError(because("graft-base", found=base, expected=self.base))
        numbers = {number: uniform[number & ~1] | number & 1 for pair in uniform for number in (pair, pair + 1)}
        shift = parameters_at - self.parameters_at
        words = []
        for word in self.words:
            moved = renamed(word, numbers, self.arch) if word.operation not in _MARKS else word
            words.append(_mark(word, numbers, carried, self.arch) or self._shifted(moved, shift))
        return _settled(words)

    def reads_as(self, other: Snippet) -> bool:
        """Whether ``other``, whose parameters lie elsewhere, is this code with its parameters there."""
        shift = other.parameters_at - self.parameters_at
        return other.words == tuple(self._shifted(word, shift) for word in self.words)

    def _shifted(self, word: Word, shift: int) -> Word:
        """A word that reads a parameter of the probe's where it lies now."""
        offset = _parameter(word)
        if offset is None or offset < self.parameters_at:
            return word
        return with_offset(word, offset + shift)


_MARKS: Final = frozenset({_STORE_MARK, _LOAD_MARK})


def uniform_places(
    pairs: Sequence[int], taken: Iterable[int], carried: int, name: str
) -> tuple[dict[int, int], list[int]]:
    """Pairs of uniform registers that a kernel does not use: for each of ``pairs`` one, and ``carried`` more registers.

    Raises UnsupportedKernelError if there are too few.
    """
    used = set(taken)
    free = [pair for pair in range(REGISTERS - 3, FIRST - 1, -2) if pair not in used and pair + 1 not in used]
    if len(free) < len(pairs) + carried:
        raise UnsupportedKernelError(because("graft-uniform", kernel=name, free=len(free), needed=len(pairs) + carried))
    return dict(zip(pairs, free[carried:], strict=False)), free[:carried]


def waiting(words: Sequence[Word]) -> list[Word]:
    """Code that first waits for all that was begun before it."""
    return [words[0].with_wait_mask(ALL_BARRIERS), *words[1:]] if words else []


def back_mask(words: Sequence[Word]) -> int:
    """The barriers that must be waited for behind code at whose end the kernel goes on."""
    mask = 0
    for word in words:
        if word.operation != _S2UR:
            mask |= sum(1 << one for one in (word.write_barrier, word.read_barrier) if one != NO_BARRIER)
    return mask & ALL_BARRIERS


def _parameter(word: Word) -> int | None:
    """The offset in bank 0 of the constant that a word reads; None for one that reads none there."""
    return offset_of(word) if bank_of(word) == 0 else None


def _refuse_stack(cubin: Cubin) -> None:
    for each in read_attributes(cubin.content(cubin.section(INFO))):
        if each.number in (nv_info.FRAME_SIZE, nv_info.STACK_SIZE) and any(each.words()[1:]):
            raise UnsupportedKernelError(because("graft-snippet", what="a stack"))


def _refuse(word: Word, *, leaves: bool) -> None:
    if exact_fields(word) is None:
        raise UnsupportedKernelError(because("graft-snippet", what=f"the instruction {word.opcode:#05x}"))
    if word.operation in _CONTROL_FLOW and not (leaves and word.opcode == EXIT and not word.is_unconditional):
        raise UnsupportedKernelError(because("graft-snippet", what="a branch"))
    if bank_of(word) is not None and is_indexed(word):
        raise UnsupportedKernelError(because("graft-snippet", what="a constant whose place is in a register"))


def _mark(word: Word, numbers: Mapping[int, int], carried: Sequence[int], arch: int) -> Word | None:
    """The move that stands in the place of a mark."""
    if word.operation not in _MARKS:
        return None
    index = word.field(_MARK_AT, _MARK_BITS) // 0x1000 - 1
    if word.operation == _LOAD_MARK:
        move = _like(word, _MOV_UNIFORM).with_field(16, 8, word.rd).with_field(32, 8, carried[index])
        return move.with_field(72, 4, _ALL_BYTES).with_field(_UNIFORM_OPERAND, 1, 1)
    if word.ra != RZ or not word.is_uniform_operand:
        raise UnsupportedKernelError(because("graft-lanes"))
    source = numbers[word.field(64, 8 if arch >= 100 else 6)]
    move = _like(word, _UMOV).with_field(16, 8, carried[index]).with_field(32, 8, source)
    return move.with_field(_UNIFORM_OPERAND, 1, 1)


def _like(word: Word, opcode: int) -> Word:
    """An instruction of fixed latency that waits for what ``word`` waits for, and is done when the next one begins."""
    made = Word(opcode).with_field(12, 4, word.field(12, 4)).with_wait_mask(word.wait_mask)
    return made.with_stall(max(_MOVE_STALL, word.stall)).with_write_barrier(NO_BARRIER).with_read_barrier(NO_BARRIER)


def _settled(words: Sequence[Word]) -> list[Word]:
    """Stores with a barrier for their operands, so that who comes next can wait until these were read."""
    return [
        word.with_read_barrier(_OPERAND_BARRIER)
        if word.operation in _STORES and word.read_barrier == NO_BARRIER and word.write_barrier == NO_BARRIER
        else word
        for word in words
    ]
