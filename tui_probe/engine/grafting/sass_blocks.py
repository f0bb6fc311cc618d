"""Find the basic blocks of SASS that a probe counts, and where the code of each goes.

A warp that enters a block executes all of it, so constants are added once per block: the number of instructions of a
class, and constants that snippets at single instructions add each time, such as a multiply-add's two operations. Only
instructions under a guard, and those whose address matters, need code of their own.

The code is at any instruction of the block that may be executed elsewhere, for all execute as often. In a block of
nothing but branches it is at the branch. A block whose instructions cannot be moved, such as a call or the code that
``WARPSYNC.COLLECTIVE`` leads to, is counted with the one behind it, to which it leads unless its lanes leave.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tui_probe.engine.snippet import BLOCK_HELPER, parse_snippet
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.positions import BLOCK
from tui_probe.probe_model.probe import FileLocation, ProbePoint, SnippetCode
from tui_probe.reasons import because
from tui_probe.sass.flow import BRA_OPERATION, BSYNC_OPERATION, basic_blocks
from tui_probe.sass.operations import operation_class, operation_name
from tui_probe.sass.words import CONTROL_FLOW, EXIT, WORD_BYTES, branch_target, operation_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from tui_probe.probe_model.probe import Probe, Snippet
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

_ADDITION: Final = re.compile(r"add\.[usb](32|64)\s+(%[\w$]+)\s*,\s*(%[\w$]+)\s*,\s*(\w+)\s*;")
_PREFERRED_CLASSES: Final = frozenset({"fp32", "fp64", "fp16", "bf16", "integer", "load", "store"})
_EXIT: Final = operation_of(EXIT)
_END_COLLECTIVE: Final = 0x11B
"""Ends what a warp does as one for lanes that have parted, where no one should branch."""
_LEAVING_OPERATIONS: Final = frozenset({0x149, 0x14A, 0x14B, BRA_OPERATION, _EXIT, 0x150, 0x158, 0x159, 0x15B})
"""BRX, JMP, JMX, BRA, EXIT, RET, BRXU, JMXU, KILL."""
_NO_LOCATION: Final = FileLocation("", 0)


@dataclass(frozen=True, slots=True)
class BlockCode:
    """Code at the start of a block. ``number`` is the value passed to the snippet, 64 bits if ``is_wide``."""

    point: ProbePoint
    number: int
    is_wide: bool = False


@dataclass(frozen=True, slots=True)
class SassBlock:
    """A basic block at byte offset ``start_offset``, with its code at the instruction at ``code_offset``."""

    start_offset: int
    code_offset: int
    codes: tuple[BlockCode, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """Equal where the code is, but for the numbers."""
        return tuple(code.point.name for code in self.codes)


def block_points(probe: Probe) -> list[ProbePoint]:
    """Return the points of a probe that are at basic blocks."""
    return [point for point in probe.points if any(position.opcode == BLOCK for position in point.positions)]


def additions(snippet: Snippet, values: Mapping[str, int | None]) -> dict[str, int] | None:
    """Return the constants that a snippet adds to registers; None if it does anything else.

    ``values`` are those of helpers.
    """
    sums: Counter[str] = Counter()
    for statement in snippet.statements:
        match = _ADDITION.fullmatch(statement.text.strip()) if isinstance(statement, SnippetCode) else None
        if match is None or match[2] != match[3]:
            return None
        number = int(match[4]) if match[4].isdecimal() else values.get(match[4])
        if number is None:
            return None
        sums[match[2]] += number
    return dict(sums)


def probed_blocks(
    probe: Probe, target: GraftTarget, known_additions: Mapping[int, Mapping[str, int]], sites: Collection[int]
) -> list[SassBlock]:
    """Return the blocks of a kernel that need code.

    ``known_additions`` are the constants that instructions, by their numbers, add to registers each time; ``sites`` are
    the byte offsets at which there is code for an instruction.

    Raises UnsupportedKernelError for a block that no code can be put into.
    """
    points = block_points(probe)
    if not points:
        return []
    fixed = _fixed_instructions(target)
    blocks, pending = [], range(0)
    for block in basic_blocks(target):
        span = range(pending.start, block.stop) if pending else block
        if all(is_padding(target, index) for index in span):
            pending = range(0)
            continue
        position = _code_position(target, block, fixed, sites)
        if position is None and not _continues(target.words[block[-1]]):
            raise UnsupportedKernelError(because("graft-position", at=f"{block.start * WORD_BYTES:#06x}"))
        pending = span if position is None else range(0)
        codes = () if position is None else tuple(_block_codes(probe, points, target, span, known_additions))
        if codes and position is not None:
            blocks.append(SassBlock(block.start * WORD_BYTES, position * WORD_BYTES, codes))
    return blocks


def _block_codes(
    probe: Probe,
    points: Sequence[ProbePoint],
    target: GraftTarget,
    block: range,
    known_additions: Mapping[int, Mapping[str, int]],
) -> Iterable[BlockCode]:
    groups_by_point = [
        [position.modifiers for position in point.positions if position.opcode == BLOCK] for point in points
    ]
    counts_classes = any(groups_by_point)
    classes = Counter(operation_class(target.words[index], target.arch) for index in block if counts_classes)
    for point, class_groups in zip(points, groups_by_point, strict=True):
        number = sum(sum(classes[name] for name in names or classes) for names in class_groups)
        if number:
            yield BlockCode(point, number)
    sums: dict[str, int] = defaultdict(int)
    for index in block:
        for register, number in known_additions.get(index, {}).items():
            sums[register] += number
    for register in sorted(sums):
        bits = 64 if probe.registers[register].endswith("64") else 32
        yield BlockCode(_point_of_sum(register, bits), sums[register], is_wide=bits > 32)


@lru_cache(maxsize=64)
def _point_of_sum(register: str, bits: int) -> ProbePoint:
    """Return the point that adds the sum of a block to a register."""
    snippet = parse_snippet(f"add.u{bits} {register}, {register}, {BLOCK_HELPER};", _NO_LOCATION, "").snippet
    return ProbePoint(f"sum of {register}", (), snippet, None)


def _fixed_instructions(target: GraftTarget) -> set[int]:
    """Return the numbers of instructions that must stay: the first one, and those that the loader writes to."""
    offsets = (
        relocation.offset
        for section in target.cubin.relocation_sections()
        if section.info == target.code.number
        for relocation in target.cubin.relocations(section)
    )
    return {0, *(offset // WORD_BYTES for offset in offsets)}


def _code_position(target: GraftTarget, block: range, fixed: Collection[int], sites: Collection[int]) -> int | None:
    """Return the number of the instruction that the code of a block is at; None where it can be at none."""
    if any(target.words[index].operation == _END_COLLECTIVE for index in block):
        return None
    free = [index for index in block if index not in fixed]
    non_branches = [index for index in free if target.words[index].operation not in CONTROL_FLOW]
    ordinary = [
        index
        for index in non_branches
        if target.words[index].is_unconditional
        and index * WORD_BYTES not in sites
        and operation_class(target.words[index], target.arch) in _PREFERRED_CLASSES
    ]
    movable = [index for index in free if _is_movable(target.words[index])]
    return next(iter([*ordinary, *non_branches, *movable]), None)


def _is_movable(word: Word) -> bool:
    return word.operation in (BRA_OPERATION, BSYNC_OPERATION) or (word.operation == _EXIT and word.is_unconditional)


def _continues(word: Word) -> bool:
    """Return whether lanes continue behind an instruction, immediately or once a call returns."""
    return not word.is_unconditional or word.operation not in _LEAVING_OPERATIONS


def is_padding(target: GraftTarget, index: int) -> bool:
    """Return whether an instruction is padding behind the code: a branch to itself, or a ``NOP``."""
    word = target.words[index]
    if word.operation == BRA_OPERATION and word.is_unconditional:
        return branch_target(target.arch, index * WORD_BYTES, word) == index * WORD_BYTES
    return operation_name(word, target.arch) == "NOP"
