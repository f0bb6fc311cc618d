"""``st.async``: stores to the shared memory of a block of the cluster whose bytes an mbarrier there counts (sm_90).

A store is done as a copy of its bytes is, see ``model``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.ptx.tree import Vector
from tui_probe.simgpu.executor import loads
from tui_probe.simgpu.executor.access import Access
from tui_probe.simgpu.executor.forms import last_type, operands_of
from tui_probe.simgpu.executor.mbarrier_words import WORD_BYTES, Event
from tui_probe.simgpu.executor.mbarriers import happen_in_turn, words_of
from tui_probe.simgpu.executor.model import COPY_LATENCY, copy_cycles

if TYPE_CHECKING:
    from tui_probe.ptx.tree import Instruction
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.operands import Binder, Operation


def build_store(instruction: Instruction, bind: Binder) -> Operation:
    """``st`` in all its forms."""
    if "async" not in instruction.modifiers:
        return loads.build_store(instruction, bind)
    if "mbarrier::complete_tx::bytes" not in instruction.modifiers:
        return bind.unsupported()
    to, stored, word = operands_of(instruction, 3)
    kind = last_type(instruction)
    size = kind.bytes * (len(stored.elements) if isinstance(stored, Vector) else 1)
    store = loads.build_store_of(to, stored, kind, "shared", bind)
    access, line = Access(word, "shared", WORD_BYTES, bind), bind.line
    bind.effects.starts_block = True

    def run(group: Group) -> None:
        store(group)
        lanes = group.lanes
        times = (group.batch.counters[lanes.warp] + COPY_LATENCY + copy_cycles(size)).tolist()
        events = [Event(transfer=-size)] * lanes.count
        happen_in_turn(group, line, words_of(access, group, line), events, times)

    return run
