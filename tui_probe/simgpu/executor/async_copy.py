"""``cp.async``: copies from global to shared memory.

A copy is made when it is issued, so that groups of copies have nothing to wait for. Programs that wait as
they must see no difference.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.ptx.tree import Immediate, Memory
from tui_probe.simgpu.executor.access import Access
from tui_probe.simgpu.executor.forms import operands_of
from tui_probe.simgpu.executor.loads import store, whole_type
from tui_probe.simgpu.executor.scalars import TYPES, U8, Value, integer_literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.operands import Binder, Operation


def _build(instruction: Instruction, bind: Binder) -> Operation:
    """``cp.async.ca|cg.shared.global [to], [from], size{, source size}{, policy}``; zeros after the source."""
    kind = instruction.modifiers[1]
    if kind in ("commit_group", "wait_group", "wait_all"):
        return _nothing
    if kind not in ("ca", "cg"):
        bind.unsupported()
    to, source, size_operand, *rest = operands_of(instruction, 3, 5)
    if not isinstance(size_operand, Immediate):
        bind.unsupported()
    has_policy = any("cache_hint" in modifier for modifier in instruction.modifiers)
    given = bind.source(rest[0], TYPES["u32"]) if len(rest) > has_policy else None
    size = integer_literal(size_operand.text)
    reading, writing = Access(source, "global", size, bind), Access(to, "shared", size, bind)
    single_bytes = [_byte(source, number, bind) for number in range(size)] if given else []
    reads = tuple(bind.effects.reads)
    whole = whole_type(size)

    def run(group: Group) -> None:
        if given is not None:
            wanted = given.read(group.registers)
            if (wanted < size).any():
                store(writing, group, _first_bytes(group, single_bytes, group.lanes.spread(wanted), reads))
                return
        for part in reading.parts(group):
            store(writing, group, part.view(whole)[part.element])

    return run


def _byte(source: Operand, number: int, bind: Binder) -> Access:
    if not isinstance(source, Memory):
        return bind.unsupported()
    return Access(replace(source, offset=source.offset + number), "global", 1, bind)


def _first_bytes(group: Group, single_bytes: list[Access], wanted: Value, reads: tuple[int, ...]) -> Value:
    """The first ``wanted`` bytes for each lane, and zeros after them."""
    size = len(single_bytes)
    copied = np.zeros((group.lanes.count, size), U8)
    for number, access in enumerate(single_bytes):
        positions = np.flatnonzero(wanted > number)
        if len(positions):
            for part in access.parts(group.select(positions, group.block, reads)):
                copied[positions, number] = part.view(U8)[part.element]
    result: Value = copied.view(whole_type(size))[:, 0]
    return result


def _nothing(group: Group) -> None:
    pass


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {"cp": _build}
