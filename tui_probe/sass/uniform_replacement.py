"""Compute in ordinary registers what exit code computes in uniform registers.

At an exit the lanes that leave need no ordinary register any more, but the uniform ones may be those of lanes that go
on, and large kernels leave few or none free. ptxas uses many, for all that is the same in a warp. So each value of
theirs gets an ordinary register above the snippet's own, and each instruction that makes one its variant of the
ordinary path, which has the same fields and is ready no later. Stores and loads are made without the descriptor of
memory, as before there were uniform registers; of other memory accesses it stays.

``REDUX`` has a uniform result only. ptxas begins all sums of an exit before it uses the first, which takes a uniform
register each. Where a kernel leaves fewer, all have the same one: each result is moved to an ordinary register behind
its instruction, which waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass.lane_registers import needs_uniform
from tui_probe.sass.uniform_registers import (
    UNIFORM_MEMORY_FIELDS,
    UNIFORM_REGISTERS,
    WIDE_FROM,
    exact_uniform_fields,
    uniform_register_at,
)
from tui_probe.sass.words import (
    ALL_BYTES,
    BARRIER_SET_STALL,
    GUARD,
    LDC,
    LDCU,
    MOV_UNIFORM,
    NO_BARRIER,
    RESERVED,
    RZ,
    ULDC,
    Word,
    new_word,
    nop_word,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_RD: Final = 16
_RB: Final = 32
_ORDINARY_FORMS: Final[Mapping[int, int]] = {
    0x082: 0x002, 0x086: 0x006, 0x090: 0x010, 0x091: 0x011, 0x092: 0x012, 0x099: 0x019, 0x0A4: 0x024, 0x0A5: 0x025,
}  # fmt: skip
"""UMOV, VOTEU, UIADD3, ULEA, ULOP3, USHF, UIMAD, UIMAD.WIDE, and what does the same in ordinary registers."""
_WIDE_MULTIPLY: Final = 0x0A5
_UMOV: Final = 0x082
_S2UR, _S2R = 0x1C3, 0x119
_REDUX: Final = 0x1C4
_UNIFORM_LOADS: Final = frozenset({ULDC, LDCU})
_MOVE_CONSTANT: Final = 0xA02
_MARK_LOAD: Final = 0x184
_ACCESSES: Final[Mapping[int, tuple[int, int]]] = {0x986: (0x386, 64), 0x981: (0x381, 32)}
"""STG and LDG with a descriptor: what they are without, and where it is."""
_HAS_DESCRIPTOR, _WIDE_ADDRESS = 76, 90
"""True if the uniform register is a descriptor or an offset; whether the address next to it has 64 bits."""
_REGISTER_FORM, _CONSTANT_FORM, _UNIFORM_FORM, _UNIFORM_LAST_FORM = 1, 5, 6, 7
"""A uniform second operand, and a uniform third one, which is in the second one's place then."""
_RC: Final = 64
_FORM_AT, _FORM_BITS = 9, 3
_MASK_AT, _MASK_BITS = 72, 4
_SIZE_AT, _SIZE_BITS, _PAIR_SIZE = 73, 3, 5
_OFFSET_AT, _CONSTANT_BITS = 38, 16
"""Bit of the offset of a constant; that of LDCU is a bit lower."""
_UNIFORM_OPERAND: Final = 91
_REUSE_AT, _REUSE_BITS = 122, 4
"""Operands kept for the next instruction, which may be another one now."""
_RESULT_CYCLES: Final = 6
"""Cycles until the result of an instruction of fixed latency is there."""
_LOADS_FROM: Final = 90
_LOAD_BARRIER: Final = 4


def without_uniform(
    words: Sequence[Word], registers: int, arch: int, *, moves_redux: bool = False
) -> tuple[list[Word], int]:
    """Return the code with ordinary registers from ``registers`` on instead of uniform ones, and the registers it
    needs.

    What has no variant keeps its uniform registers, and so does what is a descriptor of memory accesses. With
    ``moves_redux`` all results of ``REDUX`` have one uniform register together.
    """
    definitions = _UniformDefinitions.from_words(_with_own_barriers(words), arch, moves_redux=moves_redux)
    places = _OrdinaryRegisters(registers + (registers & 1))
    ordinary_words: list[Word] = []
    for index, word in enumerate(definitions.words):
        variants = _ordinary_words(word, index, definitions, places)
        ordinary_words += variants or [
            nop_word().with_stall(max(word.stall, 1))
        ]  # what comes next may have relied on its cycles
    return [word.with_field(_REUSE_AT, _REUSE_BITS, 0) for word in ordinary_words], max(registers, places.end)


@dataclass(slots=True)
class _OrdinaryRegisters:
    """The ordinary register of each uniform one: pairs stay pairs."""

    start: int
    pairs: dict[int, int] = field(default_factory=dict)

    def register_for(self, number: int) -> int:
        if number >= UNIFORM_REGISTERS:
            return RZ
        pair = self.pairs.setdefault(number & ~1, self.start + 2 * len(self.pairs))
        return pair | number & 1

    @property
    def end(self) -> int:
        """The number of registers with these, and with those that the hardware keeps for itself behind the last."""
        return self.start + 2 * len(self.pairs) + RESERVED


@dataclass(slots=True)
class _UniformDefinitions:
    """Definitions of the uniform registers that instructions name, in code that runs from first to last.

    ``makers`` are the instructions that define a register, by the instruction that reads it and the bit of its field.
    ``uniform_indices`` are the instructions whose results stay uniform, ``live_indices`` those whose results are used.
    """

    arch: int
    words: Sequence[Word]
    moves_redux: bool = False
    makers: dict[tuple[int, int], set[int]] = field(default_factory=dict)
    uniform_indices: set[int] = field(default_factory=set)
    live_indices: set[int] = field(default_factory=set)

    @classmethod
    def from_words(cls, words: Sequence[Word], arch: int, *, moves_redux: bool) -> _UniformDefinitions:
        definitions = cls(arch, words, moves_redux)
        definition_indices: dict[int, int] = {}
        for index, word in enumerate(words):
            for bit in _uniform_sources(word):
                number = uniform_register_at(word, bit, arch)
                numbers = (number, number + 1) if word.operation in UNIFORM_MEMORY_FIELDS else (number,)
                definitions.makers[index, bit] = {
                    definition_indices[number] for number in numbers if number in definition_indices
                }
            if makes_uniform(word):
                register = uniform_register_at(word, _RD, arch)
                definition_indices |= dict.fromkeys(range(register, register + _result_registers(word)), index)
        definitions._find_uniform()
        return definitions

    def _find_uniform(self) -> None:
        for index in reversed(range(len(self.words))):
            word = self.words[index]
            if makes_uniform(word) and not (_has_ordinary_form(word) or self.is_moved(word)):
                self.uniform_indices.add(index)
            if _drops_uniform(word) or (makes_uniform(word) and index not in self.live_indices | self.uniform_indices):
                continue
            for bit in _uniform_sources(word):
                self.live_indices |= self.makers[index, bit]
                if index in self.uniform_indices or word.operation in UNIFORM_MEMORY_FIELDS:
                    self.uniform_indices |= self.makers[index, bit]

    @property
    def loads(self) -> set[int]:
        """The indexes of loads of constants that go to ordinary registers, with a barrier."""
        if self.arch < _LOADS_FROM:
            return set()
        return {
            index for index, word in enumerate(self.words) if word.operation in _UNIFORM_LOADS
        } - self.uniform_indices

    def is_moved(self, word: Word) -> bool:
        """Return whether the uniform result is moved to an ordinary register."""
        return self.moves_redux and word.operation == _REDUX

    @property
    def shared_register(self) -> int:
        """A uniform register that the code does not name, for results that are moved."""
        named_registers = {
            uniform_register_at(word, bit, self.arch) for word in self.words for bit in exact_uniform_fields(word) or ()
        }
        return next(number for number in range(UNIFORM_REGISTERS - 3, 0, -2) if number not in named_registers)

    def stays_uniform(self, index: int, bit: int) -> bool:
        """Return whether the register named there stays a uniform one."""
        return bool(self.makers[index, bit] & self.uniform_indices)


def makes_uniform(word: Word) -> bool:
    """Return whether the result is in uniform registers."""
    return _RD in (exact_uniform_fields(word) or ())


def _drops_uniform(word: Word) -> bool:
    """Return whether it is a mark, or an access that can do without a descriptor."""
    return word.operation == _MARK_LOAD or word.opcode in _ACCESSES


def _uniform_sources(word: Word) -> list[int]:
    return [bit for bit in exact_uniform_fields(word) or () if bit != _RD]


def _result_registers(word: Word) -> int:
    """Return the number of registers of the result."""
    if word.operation in _UNIFORM_LOADS:
        return 2 if word.field(_SIZE_AT, _SIZE_BITS) == _PAIR_SIZE else 1
    return 2 if word.operation == _WIDE_MULTIPLY else 1


def _has_ordinary_form(word: Word) -> bool:
    return word.operation in _ORDINARY_FORMS or word.operation == _S2UR or word.operation in _UNIFORM_LOADS


def _ordinary_words(word: Word, index: int, definitions: _UniformDefinitions, places: _OrdinaryRegisters) -> list[Word]:
    """Return the replacement of a word: itself if nothing of it changes."""
    if makes_uniform(word):
        if index in definitions.uniform_indices or (index not in definitions.live_indices and word.wait_mask):
            return [word]
        if index not in definitions.live_indices:
            return []
        if definitions.is_moved(word):
            return _moved_result(
                word, places.register_for(uniform_register_at(word, _RD, definitions.arch)), definitions.shared_register
            )
        if word.operation in _UNIFORM_LOADS:
            return _constant_load(
                word, places.register_for(uniform_register_at(word, _RD, definitions.arch)), definitions.arch
            )
        return [_with_waits(_ordinary_word(word, definitions, places), index, definitions)]
    if word.operation == _MARK_LOAD and _uniform_sources(word):
        return [word.with_field(_RB, 8, RZ if definitions.arch >= WIDE_FROM else UNIFORM_REGISTERS)]
    if word.opcode in _ACCESSES:
        opcode, descriptor = _ACCESSES[word.opcode]
        variant = word.with_field(0, 12, opcode).with_field(descriptor, 8, 0)
        for flag in (_UNIFORM_OPERAND, _HAS_DESCRIPTOR, _WIDE_ADDRESS):
            variant = variant.with_field(flag, 1, 0)
        return [variant]
    if all(definitions.stays_uniform(index, bit) for bit in _uniform_sources(word)):
        return [word]
    if word.form not in (_UNIFORM_FORM, _UNIFORM_LAST_FORM) or _uniform_sources(word) != [_RB]:
        raise UnsupportedKernelError(because("graft-snippet", what=f"operation {word.operation:#05x}"))
    variant = _ordinary_operand(word, places.register_for(uniform_register_at(word, _RB, definitions.arch)))
    return [_with_waits(variant, index, definitions)]


def _ordinary_word(word: Word, definitions: _UniformDefinitions, places: _OrdinaryRegisters) -> Word:
    if needs_uniform(word):
        # its variant would write a predicate of this number, which may hold something else
        raise UnsupportedKernelError(because("graft-snippet", what="a uniform predicate"))
    variant = word
    for bit in exact_uniform_fields(word) or ():
        variant = variant.with_field(bit, 8, places.register_for(uniform_register_at(word, bit, definitions.arch)))
    if word.operation == _S2UR:
        return variant.with_field(0, 9, _S2R)
    variant = variant.with_field(0, 9, _ORDINARY_FORMS[word.operation]).with_field(_UNIFORM_OPERAND, 1, 0)
    if word.form == _UNIFORM_FORM:
        variant = variant.with_field(_FORM_AT, _FORM_BITS, _REGISTER_FORM)
    if word.operation == _UMOV:
        variant = variant.with_field(_MASK_AT, _MASK_BITS, ALL_BYTES)
    return _as_fixed_latency(variant)


def _ordinary_operand(word: Word, register: int) -> Word:
    variant = word.with_field(_FORM_AT, _FORM_BITS, _REGISTER_FORM).with_field(_UNIFORM_OPERAND, 1, 0)
    if word.form == _UNIFORM_LAST_FORM:
        return variant.with_field(_RB, 8, word.field(_RC, 8)).with_field(_RC, 8, register)
    return variant.with_field(_RB, 8, register)


def _with_waits(word: Word, index: int, definitions: _UniformDefinitions) -> Word:
    """Return the word, which waits for what it reads of constant memory."""
    reads_load = any(
        maker in definitions.loads
        for bit in _uniform_sources(definitions.words[index])
        for maker in definitions.makers[index, bit]
    )
    return word.with_wait_mask(word.wait_mask | 1 << _LOAD_BARRIER) if reads_load else word


def _moved_result(word: Word, register: int, uniform: int) -> list[Word]:
    """Return the instruction with its result in ``uniform``, and the move of it to an ordinary register."""
    instruction = (
        word.with_field(_RD, 8, uniform)
        .with_write_barrier(_LOAD_BARRIER)
        .with_stall(max(word.stall, BARRIER_SET_STALL))
    )
    move = new_word(MOV_UNIFORM, _RESULT_CYCLES).with_field(_RD, 8, register).with_field(_RB, 8, uniform)
    move = move.with_field(_MASK_AT, _MASK_BITS, ALL_BYTES).with_field(_UNIFORM_OPERAND, 1, 1)
    return [instruction, move.with_field(*GUARD, word.field(*GUARD)).with_wait_mask(1 << _LOAD_BARRIER)]


def _constant_load(word: Word, register: int, arch: int) -> list[Word]:
    """Return the load of a constant: before sm_90 a move, which has a fixed latency; later moves take no constants."""
    if arch >= _LOADS_FROM:
        load = word.with_field(0, 9, LDC).with_field(_FORM_AT, _FORM_BITS, _CONSTANT_FORM).with_field(24, 8, RZ)
        if word.operation == LDCU:
            load = load.with_field(_OFFSET_AT, _CONSTANT_BITS, word.field(_OFFSET_AT - 1, _CONSTANT_BITS))
        load = load.with_field(_RD, 8, register).with_field(_UNIFORM_OPERAND, 1, 0)
        return [load.with_write_barrier(_LOAD_BARRIER).with_stall(max(word.stall, BARRIER_SET_STALL))]
    offset = word.field(_OFFSET_AT, _CONSTANT_BITS)
    move = word.with_field(0, 12, _MOVE_CONSTANT).with_field(24, 8, 0).with_field(64, 41, 0)
    move = move.with_field(_MASK_AT, _MASK_BITS, ALL_BYTES)
    return [
        _as_fixed_latency(
            move.with_field(_RD, 8, register + half).with_field(_OFFSET_AT, _CONSTANT_BITS, offset + 4 * half)
        )
        for half in range(_result_registers(word))
    ]


def _as_fixed_latency(word: Word) -> Word:
    """Return the word with fixed latency: no barrier signals its result."""
    return word.with_stall(max(word.stall, _RESULT_CYCLES)).with_write_barrier(NO_BARRIER)


def _with_own_barriers(words: Sequence[Word]) -> list[Word]:
    """Give each ``S2UR`` a barrier: ptxas gives only the last of several one, as they end in order; ``S2R`` may not."""
    reversed_words: list[Word] = []
    barrier = NO_BARRIER
    for word in reversed(words):
        if word.operation == _S2UR:
            barrier = barrier if word.write_barrier == NO_BARRIER else word.write_barrier
            reversed_words.append(word.with_write_barrier(barrier))
        else:
            reversed_words.append(word)
    return reversed_words[::-1]
