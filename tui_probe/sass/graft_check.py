"""Compare a grafted cubin with the original, and refuse any other difference than the graft.

This looks at the finished file only, and shares no code with what made it but the reader: a mistake there is found
here, before the file is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.binaries.cubin import Cubin
from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass.target import INFO_PREFIX, GraftTarget
from tui_probe.sass.uniform_registers import named_uniform_registers, uniform_register_at
from tui_probe.sass.words import (
    BRA,
    BSSY,
    BSYNC,
    CONTROL_FLOW,
    EXIT,
    MOV_UNIFORM,
    NO_BARRIER,
    WORD_BYTES,
    branch_target,
    operation_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from tui_probe.sass.graft import Grafted
    from tui_probe.sass.words import Word

_READ_BARRIER: Final = 113
_REUSE: Final = 122, 4
_BRA: Final = operation_of(BRA)
_TABLES: Final = frozenset({".symtab", INFO_PREFIX})
_TO_UNIFORM: Final = frozenset({0x2CA, 0x3C2})
"""R2UR, from sm_90 on and before: an ordinary register into a uniform one."""
_RESULT: Final = 16


def refuse_changes(target: GraftTarget, grafted: Grafted, uniform: Collection[int]) -> None:
    """Raise UnsupportedKernelError where more of a kernel is another than a graft may change.

    ``uniform`` are the uniform registers that the added code may use.
    """
    after = GraftTarget.of(Cubin.read(grafted.image), target.name)
    _refuse_other_sections(target, after, grafted)
    _refuse_other_instructions(target, after, grafted)
    _refuse_lost_waits(target, after, grafted)
    _refuse_added_code(target, after, grafted, uniform)


def _refuse_other_sections(target: GraftTarget, after: GraftTarget, grafted: Grafted) -> None:
    own = {target.code.name, target.info.name, target.constants.name, *_TABLES}
    patched = {patch.offset for patch in grafted.patches}
    for section in after.cubin.sections:
        before = target.cubin.sections[section.number]
        if section.name != before.name:
            _refuse(f"section {section.name}")
        if section.name in own or section.name.startswith((".rel.", ".rela.")):
            continue
        here = any(section.offset <= offset < section.end for offset in patched)
        if not here and after.cubin.content(section) != target.cubin.content(before):
            _refuse(f"section {section.name}")
    if after.cubin.content(after.constants)[: target.constants.size] != target.cubin.content(target.constants):
        _refuse("constants")


def _refuse_other_instructions(target: GraftTarget, after: GraftTarget, grafted: Grafted) -> None:
    replaced = set(grafted.branches)
    for index, (before, now) in enumerate(zip(target.words, after.words, strict=False)):
        at = index * WORD_BYTES
        if at in replaced:
            if now.opcode != BRA or branch_target(after.arch, at, now) < grafted.start or _changes_lanes(before, now):
                _refuse(f"the branch at {at:#06x}")
        elif now != before and not _waits_more(before, now):
            _refuse(f"the instruction at {at:#06x}")


def _refuse_lost_waits(target: GraftTarget, after: GraftTarget, grafted: Grafted) -> None:
    """Refuse code behind a branch that misses waits of the branch, up to the instruction that the branch replaced."""
    for at in grafted.branches:
        before, branch = target.words[at // WORD_BYTES], after.words[at // WORD_BYTES]
        missing = before.wait_mask & ~branch.wait_mask
        index = branch_target(after.arch, at, branch) // WORD_BYTES
        while missing and index < len(after.words):
            word = after.words[index]
            missing &= ~word.wait_mask
            if word.operation == _BRA or _without_operand_waits(word) == _without_operand_waits(before):
                break
            index += 1
        if missing:
            _refuse(f"the waits at {at:#06x}")


def _changes_lanes(before: Word, now: Word) -> bool:
    """Return whether other lanes take the branch than the instruction was for."""
    return before.operation == operation_of(EXIT) and before.field(12, 4) != now.field(12, 4)


def _waits_more(before: Word, now: Word) -> bool:
    """Return whether a word tells when its operands were read, which it did not before, and is the same otherwise."""
    return before.read_barrier == NO_BARRIER and before.with_field(_READ_BARRIER, 3, now.read_barrier) == now


def _refuse_added_code(target: GraftTarget, after: GraftTarget, grafted: Grafted, uniform: Collection[int]) -> None:
    back = {at + WORD_BYTES for at in grafted.branches} | _jump_target(target, grafted)
    first = grafted.start // WORD_BYTES
    moved = {_without_operand_waits(target.words[at // WORD_BYTES]) for at in grafted.branches}
    added = after.words[first : first + grafted.added]
    added_end = grafted.start + grafted.added * WORD_BYTES
    checked: set[Word] = set()
    for index, word in enumerate(added, first):
        at = index * WORD_BYTES
        if word.operation == _BRA and not _is_expected_target(branch_target(after.arch, at, word), at, added_end, back):
            _refuse(f"the branch back at {at:#06x}")
        if word.operation in CONTROL_FLOW and word.operation != _BRA and word.opcode not in (EXIT, BSSY, BSYNC):
            _refuse(f"the path through the added code at {at:#06x}")
        if word in checked:
            continue
        checked.add(word)
        own = word.operation not in CONTROL_FLOW and _without_operand_waits(word) not in moved
        own = own and word.opcode != MOV_UNIFORM  # which reads what the instruction itself reads
        if own and not _names_only(word, uniform, after.arch):
            _refuse(f"uniform registers at {at:#06x}")


def _without_operand_waits(word: Word) -> Word:
    """A word without what may change when it is moved: reuse flags, and the barrier it sets for its operands."""
    return word.with_field(*_REUSE, 0).with_read_barrier(NO_BARRIER)


def _jump_target(target: GraftTarget, grafted: Grafted) -> set[int]:
    """Return the former targets of branches of the kernel that are in the added code now."""
    branches = ((at, target.words[at // WORD_BYTES]) for at in grafted.branches)
    return {branch_target(target.arch, at, word) for at, word in branches if word.operation == _BRA}


def _is_expected_target(target: int, at: int, end: int, back: Collection[int]) -> bool:
    """Return whether a branch leads on in the added code, or back to where an instruction was replaced, or where it
    led.
    """
    return target in back or at < target < end


def _names_only(word: Word, uniform: Collection[int], arch: int) -> bool:
    """Return whether a word names these uniform registers and the second ones of their pairs only."""
    is_move = word.opcode in _TO_UNIFORM
    names = {uniform_register_at(word, _RESULT, arch)} if is_move else named_uniform_registers(word, arch)
    return names is not None and all(number & ~1 in uniform for number in names)


def _refuse(what: str) -> None:
    raise UnsupportedKernelError(because("graft-changed", what=what))
