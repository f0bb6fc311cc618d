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

    from tui_probe.sass.graft import GraftedCubin
    from tui_probe.sass.words import Word

_READ_BARRIER: Final = 113
_BRA: Final = operation_of(BRA)
_TABLES: Final = frozenset({".symtab", INFO_PREFIX})
_TO_UNIFORM: Final = frozenset({0x2CA, 0x3C2})
"""R2UR, from sm_90 on and before: an ordinary register into a uniform one."""
_RESULT: Final = 16


def refuse_changes(target: GraftTarget, grafted: GraftedCubin, uniform: Collection[int]) -> None:
    """Raise UnsupportedKernelError where more of a kernel is another than a graft may change.

    ``uniform`` are the uniform registers that the added code may use.
    """
    grafted_target = GraftTarget.from_cubin(Cubin.read(grafted.image), target.name)
    _refuse_other_sections(target, grafted_target, grafted)
    _refuse_other_instructions(target, grafted_target, grafted)
    _refuse_lost_waits(target, grafted_target, grafted)
    _refuse_other_copies(target, grafted_target, grafted)
    _refuse_added_code(target, grafted_target, grafted, uniform)


def _refuse_other_sections(target: GraftTarget, grafted_target: GraftTarget, grafted: GraftedCubin) -> None:
    changed_sections = {target.code.name, target.info.name, target.constants.name, *_TABLES}
    patched = {patch.offset for patch in grafted.patches}
    for section in grafted_target.cubin.sections:
        original_section = target.cubin.sections[section.number]
        if section.name != original_section.name:
            _refuse(f"section {section.name}")
        if section.name in changed_sections or section.name.startswith((".rel.", ".rela.")):
            continue
        is_patched = any(section.offset <= offset < section.end for offset in patched)
        if not is_patched and grafted_target.cubin.content(section) != target.cubin.content(original_section):
            _refuse(f"section {section.name}")
    if grafted_target.cubin.content(grafted_target.constants)[: target.constants.size] != target.cubin.content(
        target.constants
    ):
        _refuse("constants")


def _refuse_other_instructions(target: GraftTarget, grafted_target: GraftTarget, grafted: GraftedCubin) -> None:
    branch_offsets = set(grafted.branches)
    for index, (original, current) in enumerate(zip(target.words, grafted_target.words, strict=False)):
        offset = index * WORD_BYTES
        if offset in branch_offsets:
            if (
                current.opcode != BRA
                or branch_target(grafted_target.arch, offset, current) < grafted.start
                or _changes_lanes(original, current)
            ):
                _refuse(f"the branch at {offset:#06x}")
        elif current != original and not _waits_more(original, current):
            _refuse(f"the instruction at {offset:#06x}")


def _refuse_lost_waits(target: GraftTarget, grafted_target: GraftTarget, grafted: GraftedCubin) -> None:
    """Refuse code behind a branch that misses waits of the branch, up to the instruction that the branch replaced."""
    for offset in {*grafted.branches} - grafted.copies.keys():
        original, branch = target.words[offset // WORD_BYTES], grafted_target.words[offset // WORD_BYTES]
        missing_waits = original.wait_mask & ~branch.wait_mask
        index = branch_target(grafted_target.arch, offset, branch) // WORD_BYTES
        while missing_waits and index < len(grafted_target.words):
            word = grafted_target.words[index]
            missing_waits &= ~word.wait_mask
            if word.operation == _BRA or _without_operand_waits(word) == _without_operand_waits(original):
                break
            index += 1
        if missing_waits:
            _refuse(f"the waits at {offset:#06x}")


def _refuse_other_copies(target: GraftTarget, grafted_target: GraftTarget, grafted: GraftedCubin) -> None:
    """Refuse copies of instructions that are others, or that lead elsewhere than to the copy of what they led to."""
    sources = {copy_offset: offset for offset, copy_offset in grafted.copies.items()}
    if len(sources) != len(grafted.copies):
        _refuse("two instructions into the same copy")
    for offset, copy_offset in grafted.copies.items():
        original, copy = target.words[offset // WORD_BYTES], grafted_target.words[copy_offset // WORD_BYTES]
        original_targets = [place * WORD_BYTES for place in jump_targets(target.arch, offset // WORD_BYTES, original)]
        copy_targets = [
            place * WORD_BYTES for place in jump_targets(grafted_target.arch, copy_offset // WORD_BYTES, copy)
        ]
        falls = original.operation != _BRA or is_conditional(original)
        original_successors = [*original_targets, offset + WORD_BYTES] if falls else original_targets
        copy_successors = [*copy_targets, copy_offset + WORD_BYTES] if falls else copy_targets
        pair = [_without_distance(word.without_reuse(), grafted_target.arch) for word in (original, copy)]
        is_same = pair[0] == pair[1] or _waits_more(*pair)
        if (
            not is_same
            or [_executed_from(grafted_target, grafted, sources, place) for place in copy_successors]
            != original_successors
        ):
            _refuse(f"the copy of the instruction at {offset:#06x}")
    for offset in grafted.copies.keys() & {*grafted.branches}:
        branch = grafted_target.words[offset // WORD_BYTES]
        entered = _executed_from(grafted_target, grafted, sources, branch_target(grafted_target.arch, offset, branch))
        if entered != offset or target.words[offset // WORD_BYTES].wait_mask & ~branch.wait_mask:
            _refuse(f"the branch at {offset:#06x}")


def _executed_from(
    grafted_target: GraftTarget, grafted: GraftedCubin, sources: Mapping[int, int], offset: int
) -> int | None:
    """Return the offset of the instruction of the kernel that is executed first from an offset on; None if added code
    is between that may lead elsewhere. In a copied loop, this is an instruction of the copy.
    """
    end, skip_end = grafted.start + grafted.added_count * WORD_BYTES, 0
    for _ in range(grafted.added_count):
        if not grafted.start <= offset < end or offset in sources:
            break
        word = grafted_target.words[offset // WORD_BYTES]
        jumps = word.operation == _BRA and not is_conditional(word)
        if jumps and offset < skip_end:  # inside of a snippet, whose lanes meet at its end
            return None
        if word.operation == _BRA and not jumps:
            skip_end = max(skip_end, branch_target(grafted_target.arch, offset, word))
        elif word.operation in CONTROL_FLOW and not jumps and word.opcode not in (BSSY, BSYNC):
            return None
        offset = branch_target(grafted_target.arch, offset, word) if jumps else offset + WORD_BYTES
    if skip_end > offset:
        return None
    if offset in sources or offset >= grafted.start:
        return sources.get(offset)
    is_skipped = offset in grafted.copies and offset not in grafted.branches
    return None if is_skipped else offset


def _without_distance(word: Word, arch: int) -> Word:
    """Return a branch, or the begin of a convergence region, without the distance that it leads."""
    if word.operation == _BRA:
        return with_branch_to(arch, word, 0, 0)
    return word.with_field(*BSSY_DISTANCE, 0) if word.opcode == BSSY else word


def _changes_lanes(original: Word, current: Word) -> bool:
    """Return whether other lanes take the branch than the instruction was for."""
    return original.operation == operation_of(EXIT) and original.field(12, 4) != current.field(12, 4)


def _waits_more(original: Word, current: Word) -> bool:
    """Return whether a word tells when its operands were read, which it did not before, and is the same otherwise."""
    return (
        original.read_barrier == NO_BARRIER and original.with_field(_READ_BARRIER, 3, current.read_barrier) == current
    )


def _refuse_added_code(
    target: GraftTarget, grafted_target: GraftTarget, grafted: GraftedCubin, uniform: Collection[int]
) -> None:
    return_offsets = {offset + WORD_BYTES for offset in grafted.branches} | _former_targets(target, grafted)
    sources = {copy_offset: offset for offset, copy_offset in grafted.copies.items()}
    behind_copies = {offset + WORD_BYTES for offset in grafted.copies}
    start = grafted.start // WORD_BYTES
    moved_words = {_without_operand_waits(target.words[offset // WORD_BYTES]) for offset in grafted.branches}
    added_words = grafted_target.words[start : start + grafted.added_count]
    added_end = grafted.start + grafted.added_count * WORD_BYTES
    checked: set[Word] = set()
    for index, word in enumerate(added_words, start):
        offset = index * WORD_BYTES
        if offset in sources:
            continue
        if word.operation == _BRA and not _is_expected_target(
            branch_target(grafted_target.arch, offset, word), offset, added_end, return_offsets
        ):
            destination = _executed_from(
                grafted_target, grafted, sources, branch_target(grafted_target.arch, offset, word)
            )
            if destination not in behind_copies:
                _refuse(f"the branch back at {offset:#06x}")
        if word.operation in CONTROL_FLOW and word.operation != _BRA and word.opcode not in (EXIT, BSSY, BSYNC):
            _refuse(f"the path through the added code at {offset:#06x}")
        if word in checked:
            continue
        checked.add(word)
        may_differ = word.operation not in CONTROL_FLOW and _without_operand_waits(word) not in moved_words
        may_differ = may_differ and word.opcode != MOV_UNIFORM  # which reads what the instruction itself reads
        if may_differ and not _names_only(word, uniform, grafted_target.arch):
            _refuse(f"uniform registers at {offset:#06x}")


def _without_operand_waits(word: Word) -> Word:
    """Return a word without what may change when it is moved: reuse flags, and the barrier it sets for its operands."""
    return word.without_reuse().with_read_barrier(NO_BARRIER)


def _former_targets(target: GraftTarget, grafted: GraftedCubin) -> set[int]:
    """Return the former targets of branches of the kernel that are in the added code now."""
    branches = ((offset, target.words[offset // WORD_BYTES]) for offset in grafted.branches)
    return {branch_target(target.arch, offset, word) for offset, word in branches if word.operation == _BRA}


def _is_expected_target(target: int, offset: int, end: int, return_offsets: Collection[int]) -> bool:
    """Return whether a branch leads on in the added code, or back to where an instruction was replaced, or where it
    led.
    """
    return target in return_offsets or offset < target < end


def _names_only(word: Word, uniform: Collection[int], arch: int) -> bool:
    """Return whether a word names these uniform registers and the second ones of their pairs only."""
    is_move = word.opcode in _TO_UNIFORM
    names = {uniform_register_at(word, _RESULT, arch)} if is_move else named_uniform_registers(word, arch)
    return names is not None and all(number & ~1 in uniform for number in names)


def _refuse(difference: str) -> None:
    raise UnsupportedKernelError(because("graft-changed", what=difference))
