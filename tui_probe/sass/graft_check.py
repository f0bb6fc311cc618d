"""Compare a grafted cubin with the original, and refuse any other difference than the graft.

This looks at the finished file only, and shares no code with what made it but the reader: a mistake there is found
here, before the file is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.binaries.cubin import Cubin
from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass.flow import is_conditional, jump_targets
from tui_probe.sass.target import INFO_PREFIX, GraftTarget
from tui_probe.sass.uniform_registers import named_uniform_registers, uniform_register_at
from tui_probe.sass.words import (
    BRA,
    BSSY,
    BSSY_DISTANCE,
    BSYNC,
    CONTROL_FLOW,
    EXIT,
    MOV_UNIFORM,
    NO_BARRIER,
    WORD_BYTES,
    branch_target,
    operation_of,
    with_branch_to,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tui_probe.sass.graft import Grafted
    from tui_probe.sass.words import Word

_READ_BARRIER: Final = 113
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
    _refuse_other_copies(target, after, grafted)
    _refuse_added_code(target, after, grafted, uniform)


def _refuse_other_sections(target: GraftTarget, after: GraftTarget, grafted: Grafted) -> None:
    changed_sections = {target.code.name, target.info.name, target.constants.name, *_TABLES}
    patched = {patch.offset for patch in grafted.patches}
    for section in after.cubin.sections:
        before = target.cubin.sections[section.number]
        if section.name != before.name:
            _refuse(f"section {section.name}")
        if section.name in changed_sections or section.name.startswith((".rel.", ".rela.")):
            continue
        is_patched = any(section.offset <= offset < section.end for offset in patched)
        if not is_patched and after.cubin.content(section) != target.cubin.content(before):
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
    for at in {*grafted.branches} - grafted.copies.keys():
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


def _refuse_other_copies(target: GraftTarget, after: GraftTarget, grafted: Grafted) -> None:
    """Refuse copies of instructions that are others, or that lead elsewhere than to the copy of what they led to."""
    sources = {to: at for at, to in grafted.copies.items()}
    if len(sources) != len(grafted.copies):
        _refuse("two instructions into the same copy")
    for at, to in grafted.copies.items():
        before, now = target.words[at // WORD_BYTES], after.words[to // WORD_BYTES]
        led = [place * WORD_BYTES for place in jump_targets(target.arch, at // WORD_BYTES, before)]
        leads = [place * WORD_BYTES for place in jump_targets(after.arch, to // WORD_BYTES, now)]
        falls = before.operation != _BRA or is_conditional(before)
        expected = [*led, at + WORD_BYTES] if falls else led
        reached = [*leads, to + WORD_BYTES] if falls else leads
        pair = [_without_distance(word.without_reuse(), after.arch) for word in (before, now)]
        is_same = pair[0] == pair[1] or _waits_more(*pair)
        if not is_same or [_executed_from(after, grafted, sources, place) for place in reached] != expected:
            _refuse(f"the copy of the instruction at {at:#06x}")
    for at in grafted.copies.keys() & {*grafted.branches}:
        branch = after.words[at // WORD_BYTES]
        entered = _executed_from(after, grafted, sources, branch_target(after.arch, at, branch))
        if entered != at or target.words[at // WORD_BYTES].wait_mask & ~branch.wait_mask:
            _refuse(f"the branch at {at:#06x}")


def _executed_from(after: GraftTarget, grafted: Grafted, sources: Mapping[int, int], place: int) -> int | None:
    """Return the offset of the instruction of the kernel that is executed first from an offset on; None if added code
    is between that may lead elsewhere. In a copied loop, this is an instruction of the copy.
    """
    end, skipped = grafted.start + grafted.added * WORD_BYTES, 0
    for _ in range(grafted.added):
        if not grafted.start <= place < end or place in sources:
            break
        word = after.words[place // WORD_BYTES]
        jumps = word.operation == _BRA and not is_conditional(word)
        if jumps and place < skipped:  # inside of a snippet, whose lanes meet at its end
            return None
        if word.operation == _BRA and not jumps:
            skipped = max(skipped, branch_target(after.arch, place, word))
        elif word.operation in CONTROL_FLOW and not jumps and word.opcode not in (BSSY, BSYNC):
            return None
        place = branch_target(after.arch, place, word) if jumps else place + WORD_BYTES
    if skipped > place:
        return None
    if place in sources or place >= grafted.start:
        return sources.get(place)
    is_skipped = place in grafted.copies and place not in grafted.branches
    return None if is_skipped else place


def _without_distance(word: Word, arch: int) -> Word:
    """A branch, or the begin of a convergence region, without the distance that it leads."""
    if word.operation == _BRA:
        return with_branch_to(arch, word, 0, 0)
    return word.with_field(*BSSY_DISTANCE, 0) if word.opcode == BSSY else word


def _changes_lanes(before: Word, now: Word) -> bool:
    """Return whether other lanes take the branch than the instruction was for."""
    return before.operation == operation_of(EXIT) and before.field(12, 4) != now.field(12, 4)


def _waits_more(before: Word, now: Word) -> bool:
    """Return whether a word tells when its operands were read, which it did not before, and is the same otherwise."""
    return before.read_barrier == NO_BARRIER and before.with_field(_READ_BARRIER, 3, now.read_barrier) == now


def _refuse_added_code(target: GraftTarget, after: GraftTarget, grafted: Grafted, uniform: Collection[int]) -> None:
    back = {at + WORD_BYTES for at in grafted.branches} | _jump_target(target, grafted)
    sources = {to: at for at, to in grafted.copies.items()}
    behind_copies = {at + WORD_BYTES for at in grafted.copies}
    first = grafted.start // WORD_BYTES
    moved = {_without_operand_waits(target.words[at // WORD_BYTES]) for at in grafted.branches}
    added = after.words[first : first + grafted.added]
    added_end = grafted.start + grafted.added * WORD_BYTES
    checked: set[Word] = set()
    for index, word in enumerate(added, first):
        at = index * WORD_BYTES
        if at in sources:
            continue
        if word.operation == _BRA and not _is_expected_target(branch_target(after.arch, at, word), at, added_end, back):
            leads = _executed_from(after, grafted, sources, branch_target(after.arch, at, word))
            if leads not in behind_copies:
                _refuse(f"the branch back at {at:#06x}")
        if word.operation in CONTROL_FLOW and word.operation != _BRA and word.opcode not in (EXIT, BSSY, BSYNC):
            _refuse(f"the path through the added code at {at:#06x}")
        if word in checked:
            continue
        checked.add(word)
        may_differ = word.operation not in CONTROL_FLOW and _without_operand_waits(word) not in moved
        may_differ = may_differ and word.opcode != MOV_UNIFORM  # which reads what the instruction itself reads
        if may_differ and not _names_only(word, uniform, after.arch):
            _refuse(f"uniform registers at {at:#06x}")


def _without_operand_waits(word: Word) -> Word:
    """A word without what may change when it is moved: reuse flags, and the barrier it sets for its operands."""
    return word.without_reuse().with_read_barrier(NO_BARRIER)


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
