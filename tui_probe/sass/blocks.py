"""Basic blocks of a kernel's machine code: runs of instructions that are entered at the first and left after the last.

A block begins where something may lead: at the target of a branch, of a call within the kernel, behind a convergence
barrier that ``BSSY`` names; and behind whatever may lead elsewhere or brings lanes together again. Each group of lanes
that comes to the first instruction issues all of them, once. A block that is cut in two without need does no harm.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass.branches import branch_target
from tui_probe.sass.nv_info import BRANCH_TARGETS
from tui_probe.sass.words import WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.sass.target import Target
    from tui_probe.sass.words import Word

BSYNC: Final = 0x141
BSSY: Final = 0x145
BRA: Final = 0x147
_CALL: Final = 0x144
_WARPSYNC: Final = 0x148
_INDIRECT: Final = frozenset({0x149, 0x14A, 0x14B, 0x158, 0x159})
"""BRX, JMP, JMX, BRXU, JMXU."""
_ENDS: Final = frozenset({BSYNC, 0x143, _CALL, BRA, _WARPSYNC, *_INDIRECT, 0x14D, 0x150, 0x15B, 0x15C})
"""What may lead elsewhere or joins lanes: with the above CALL, EXIT, RET, KILL, BPT."""
_TARGETS: Final = frozenset({_CALL, BRA, _WARPSYNC})
_BYTES_AT, _BYTES_BITS = 32, 32
_TABLE_HEAD: Final = 3
_CODE_SYMBOLS: Final = frozenset({0, 2})
"""Labels and functions."""


def basic_blocks(target: Target) -> list[range]:
    """The blocks of a kernel in the order of its code, as numbers of its instructions.

    The instructions behind the last one that does anything are among them. Raises UnsupportedKernelError for a branch
    through a register of which the file does not tell where it leads.
    """
    size = len(target.words)
    begins = {0, size, *_named(target), *_in_tables(target)}
    for index, word in enumerate(target.words):
        if word.operation in _ENDS:
            begins.add(index + 1)
        begins.update(_led_to(target.arch, index, word))
    places = sorted(place for place in begins if 0 <= place <= size)
    return [range(first, end) for first, end in itertools.pairwise(places)]


def _led_to(arch: int, index: int, word: Word) -> Iterator[int]:
    at = index * WORD_BYTES
    if word.operation in _TARGETS:
        led = branch_target(arch, at, word)
    elif word.operation == BSSY:
        distance = word.field(_BYTES_AT, _BYTES_BITS)
        led = at + WORD_BYTES + distance - ((distance >> _BYTES_BITS - 1) << _BYTES_BITS)
    else:
        return
    if not led % WORD_BYTES:
        yield led // WORD_BYTES


def _named(target: Target) -> Iterator[int]:
    """Where symbols of the kernel's code stand: functions that ptxas put behind it."""
    for symbol in target.cubin.symbols:
        if symbol.section == target.code.number and symbol.kind in _CODE_SYMBOLS and not symbol.value % WORD_BYTES:
            yield symbol.value // WORD_BYTES


def _in_tables(target: Target) -> set[int]:
    """Where branches through registers lead."""
    told: dict[int, list[int]] = {}
    for each in target.attributes:
        if each.number == BRANCH_TARGETS:
            words = each.words()
            while len(words) >= _TABLE_HEAD:
                at, _, count = words[:_TABLE_HEAD]
                told[at] = words[_TABLE_HEAD : _TABLE_HEAD + count]
                words = words[_TABLE_HEAD + count :]
    for index, word in enumerate(target.words):
        if word.operation in _INDIRECT and not told.get(index * WORD_BYTES):
            raise UnsupportedKernelError(because("graft-branch", at=f"{index * WORD_BYTES:#06x}"))
    return {place // WORD_BYTES for places in told.values() for place in places}
