"""Trampolines: code around one instruction of a kernel, which then continues behind it.

A branch replaces the instruction, and waits for what that waits for. Behind the kernel's code::

    NOP                   until predicates that were written last can be read
    P2R  saved, PR        all seven: a snippet writes some, which ones only ptxas knows
    MOV  flag, 0; @P MOV flag, 1                 where a predicate describes the access
    BSSY B, end           only where a guard or a branch in the snippet parts lanes
    @!P BRA end           the lanes that the instruction is not for
    the snippet           its registers above those of the kernel, its marks replaced by moves; several run one after
                          the other, with all from BSSY to R2P for those in which lanes part
  end: BSYNC B            lanes reconverge. Without this a warp would stay in parts to the end of the kernel, and
                          uniform registers would be advanced once for each part
    R2P  PR, saved        waits for all that the snippet began
    the instruction       with its guard and barriers, without ``.reuse``, which holds for the next instruction only
    BRA  back

Invariants:

- All lanes that reach the instruction leave the trampoline together, so ``WARPSYNC``, ``BSYNC`` and votes of the kernel
  see the same lanes.
- Operands that ``.reuse`` of the instruction before keeps are in registers that the snippet never writes.
- A branch of the kernel to the instruction reaches the branch to the trampoline.
- Pending instructions of the kernel write registers of its own. A barrier that both use makes one wait longer, never
  shorter; the least used ones are taken.
- The guard of a bulk copy is a uniform predicate: ``PLOP3`` behind ``P2R`` copies it to one of lanes.
- Barriers that release predicates are waited for before predicates are saved: restoring would undo a later write.
- The kernel uses the uniform registers and predicates of the snippet nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass.bulk_copies import UNIFORM_COPIES
from tui_probe.sass.inline_code import FreeRegisters, InlineCode, MarkValue
from tui_probe.sass.words import (
    ALL_BARRIERS,
    BRA,
    BSSY,
    BSYNC,
    CONVERGENCE_BARRIER,
    DESTINATION,
    GUARD,
    IMMEDIATE,
    NOP,
    PT,
    RZ,
    SECOND_PREDICATE,
    SOURCE_A,
    WORD_BYTES,
    branch_word,
    new_word,
    operation_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.sass.words import Word

PlacedSnippet: TypeAlias = "tuple[InlineCode, Mapping[int, MarkValue]]"
"""Code of a snippet, and the values of its marks."""

_P2R: Final = 0x803
_R2P: Final = 0x804
_RECONVERGENT: Final = 73
_RECONVERGENT_FROM: Final = 100
"""Bit of ``BSSY.RECONVERGENT`` and ``BSYNC.RECONVERGENT``, and the first architecture that has them."""
_ALL_PREDICATES: Final = 0x7F
"""Mask of P0 to P6."""
_PLOP3: Final = 0x81C
_PLOP3_OPERANDS: Final = 0x03F0F008
"""``PLOP3.LUT P0, PT, PT, PT, UP, 0x80, 0x0``: its bits 95:64, with UP0 as UP."""
_UNIFORM_PREDICATE: Final = 68, 3
"""Bits of UP's number in it."""
_TEST_PREDICATE: Final = 0
"""The predicate of lanes that has a uniform predicate's value in a trampoline."""
_SETTLED_STALL: Final = 13
"""Cycles after which a predicate or a register that a fixed-latency instruction wrote can be read by any other."""


def trampoline(
    inline: Sequence[PlacedSnippet],
    displaced: Word,
    free: FreeRegisters,
    flag_predicate: int = PT,
    block_code: PlacedSnippet | None = None,
) -> list[Word]:
    """Return the code that runs before an instruction.

    ``flag_predicate`` is the predicate whose value the mark of the flag has. ``block_code`` is code for all lanes that
    come by, no matter what the instruction's guard says.
    """
    if not inline and block_code is None:
        return []
    code = [new_word(NOP, _SETTLED_STALL), _save_predicates(free)]
    test = uniform_guard_test(displaced)
    displaced = displaced if test is None else displaced.with_guard(_TEST_PREDICATE, negated=displaced.guard_negated)
    if flag_predicate != PT:
        code += [MarkValue(number=0).move(free.scratch + 1), MarkValue(number=1).move(free.scratch + 1)]
        code[-1] = code[-1].with_field(*GUARD, flag_predicate)
    emitted = _entry_words(block_code, free)
    code += emitted
    for number, snippets in enumerate(_group_snippets(inline)):
        if number:  # the next one has the same registers, and predicates that say where it runs
            code.append(_restore_predicates(free, _pending_barriers(emitted)))
            emitted = []
        code += [] if test is None else [test]
        body = [word for snippet, sources in snippets for word in snippet.place(free, sources)]
        diverges = not displaced.is_unconditional or snippets[-1][0].diverges
        code += _with_convergence(body, displaced, free) if diverges else body
        emitted = [*emitted, *body]
    code.append(_restore_predicates(free, _pending_barriers(emitted)))
    return code


def uniform_guard_test(word: Word) -> Word | None:
    """Return the instruction that copies the uniform predicate of a bulk copy's guard to predicate 0; None for another
    instruction and without a guard.
    """
    if word.is_unconditional or word.operation not in UNIFORM_COPIES:
        return None
    test = new_word(_PLOP3, _SETTLED_STALL).with_field(64, 32, _PLOP3_OPERANDS)
    return test.with_field(*_UNIFORM_PREDICATE, word.guard)


def _group_snippets(inline: Sequence[PlacedSnippet]) -> list[list[PlacedSnippet]]:
    """Group the snippets that run without reconvergence in between: one in which lanes diverge ends its group."""
    groups: list[list[PlacedSnippet]] = []
    for snippet in inline:
        if not groups or groups[-1][-1][0].diverges:
            groups.append([])
        groups[-1].append(snippet)
    return groups


def _with_convergence(body: Sequence[Word], displaced: Word, free: FreeRegisters) -> list[Word]:
    """Run a body for the lanes that execute the displaced instruction; all lanes reconverge behind it."""
    branch = [] if displaced.is_unconditional else [_skip_branch(free, displaced, len(body))]
    return [_begin_convergence(free, len(body) + len(branch)), *branch, *body, _end_convergence(free)]


def _entry_words(block_code: PlacedSnippet | None, free: FreeRegisters) -> list[Word]:
    if block_code is None:
        return []
    code, sources = block_code
    if code.diverges:
        raise UnsupportedKernelError(because("graft-snippet", what="a branch at the start of a basic block"))
    return code.place(free, sources)


def opening_words(inline: InlineCode, free: FreeRegisters, sources: Mapping[int, MarkValue]) -> list[Word]:
    """Return the code that runs before the first instruction, where no predicate holds anything yet. Lanes that part
    meet again, and what it began is waited for: the next snippet has the same registers.
    """
    code = inline.place(free, sources)
    if pending := _pending_barriers(code):
        code.append(new_word(NOP, _SETTLED_STALL).with_wait_mask(pending))
    return [_begin_convergence(free, len(code)), *code, _end_convergence(free)] if inline.diverges else code


def flag_value(free: FreeRegisters) -> MarkValue:
    """Return the value of the flag's mark."""
    return MarkValue(register=free.scratch + 1)


def _pending_barriers(words: Sequence[Word]) -> int:
    """Return the mask of scoreboard barriers pending at the end, less those that all lanes waited for."""
    mask, is_convergent = 0, True
    for word in words:
        if is_convergent:
            mask &= ~word.wait_mask
        is_convergent = is_convergent and word.operation != operation_of(BRA)
        mask |= 1 << word.write_barrier | 1 << word.read_barrier  # NO_BARRIER is above those of the mask
    return mask & ALL_BARRIERS


def _save_predicates(free: FreeRegisters) -> Word:
    word = (
        new_word(_P2R, _SETTLED_STALL)
        .with_field(*DESTINATION, free.scratch)
        .with_field(*SOURCE_A, RZ)
        .with_field(*IMMEDIATE, _ALL_PREDICATES)
    )
    return word.with_wait_mask(free.predicate_barriers)


def _restore_predicates(free: FreeRegisters, mask: int) -> Word:
    word = new_word(_R2P, _SETTLED_STALL).with_field(*SOURCE_A, free.scratch).with_field(*IMMEDIATE, _ALL_PREDICATES)
    return word.with_wait_mask(mask & ALL_BARRIERS)


def _begin_convergence(free: FreeRegisters, words: int) -> Word:
    word = (
        new_word(BSSY, 5).with_field(*CONVERGENCE_BARRIER, free.convergence).with_field(*IMMEDIATE, words * WORD_BYTES)
    )
    return _as_reconvergent(word.with_field(*SECOND_PREDICATE, PT), free.arch)


def _end_convergence(free: FreeRegisters) -> Word:
    word = new_word(BSYNC, 5).with_field(*CONVERGENCE_BARRIER, free.convergence).with_field(*SECOND_PREDICATE, PT)
    return _as_reconvergent(word, free.arch)


def _as_reconvergent(word: Word, arch: int) -> Word:
    return word.with_field(_RECONVERGENT, 1, int(arch >= _RECONVERGENT_FROM))


def _skip_branch(free: FreeRegisters, displaced: Word, words: int) -> Word:
    """Return the branch over the body for lanes that do not execute the instruction."""
    word = branch_word(free.arch, 0, (words + 1) * WORD_BYTES)
    return word.with_guard(displaced.guard, negated=not displaced.guard_negated)
