"""Threads that are at the same instruction, with their registers.

Threads of a kernel start as one group. A divergent branch splits a group; groups that meet at the same place
with the same call stack are merged. So an instruction never sees a mask: it works on whole arrays, one element
for each lane of its group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tui_probe.simgpu.executor.batch import Batch
    from tui_probe.simgpu.executor.lanes import Lanes, Places
    from tui_probe.simgpu.executor.scalars import Registers, Value


@dataclass(frozen=True, slots=True)
class Frame:
    """What a caller keeps while it waits for its callee.

    ``saved`` are the registers that it still needs; ``hand_back`` takes results from the callee's registers to the
    caller's.
    """

    resume: int
    saved: tuple[tuple[int, Value], ...]
    hand_back: Callable[[Registers, Registers], None]
    local_base: int


class Group:
    """Lanes at the start of basic block ``block``.

    ``local_base`` is where the current function's local variables start. ``turn`` orders groups that wait
    for others in a loop; it is 0 for all others.
    """

    __slots__ = ("batch", "block", "frames", "lanes", "local_base", "registers", "turn")
    batch: Batch
    lanes: Lanes

    def __init__(
        self, batch: Batch, lanes: Lanes, registers: Registers, block: int, frames: tuple[Frame, ...], local_base: int
    ) -> None:
        self.batch = batch
        self.lanes = lanes
        self.registers = registers
        self.block = block
        self.frames = frames
        self.local_base = local_base
        self.turn = 0

    @property
    def place(self) -> tuple[int, tuple[int, ...], int]:
        """Groups with the same place can be merged. Deeper calls sort first, then smaller blocks."""
        return (-len(self.frames), tuple(frame.resume for frame in self.frames), self.block)

    def select(self, index: Places, block: int, live: Iterable[int]) -> Group:
        """The lanes at positions ``index`` as a group at ``block``, with the registers ``live`` alone."""
        registers = self.batch.template.copy()
        old = self.registers
        for register in live:
            registers[register] = pick(old[register], index)
        frames = tuple(
            Frame(
                frame.resume,
                tuple((register, pick(value, index)) for register, value in frame.saved),
                frame.hand_back,
                frame.local_base,
            )
            for frame in self.frames
        )
        return Group(self.batch, self.lanes.select(index), registers, block, frames, self.local_base)

    def split(self, condition: Value, block: int) -> Group:
        """Takes the lanes for which ``condition`` (one boolean per lane) holds out of this group, to ``block``.

        The rest stays in this group, with the registers that are live at its own block.
        """
        live = self.batch.live
        taken = self.select(np.flatnonzero(condition), block, live[block])
        rest = self.select(np.flatnonzero(~condition), self.block, live[self.block])
        self.lanes, self.registers, self.frames = rest.lanes, rest.registers, rest.frames
        return taken


def pick(value: Any, index: Places) -> Any:
    """``value`` for the lanes at ``index``. A scalar holds for all lanes."""
    return value if value is None or not value.ndim else value[index]


def merge(groups: Sequence[Group]) -> Group:
    """One group of all lanes of ``groups``, which are at the same place."""
    first = groups[0]
    if len(groups) == 1:
        return first
    batch = first.batch
    places = np.concatenate([group.lanes.places for group in groups])
    order = np.argsort(places, kind="stable")
    lanes = batch.lanes_of(places[order])
    counts = [group.lanes.count for group in groups]

    def join(values: list[Value]) -> Value:
        return _join(values, counts, order)

    registers = batch.template.copy()
    for register in batch.live[first.block]:
        registers[register] = join([group.registers[register] for group in groups])
    frames = tuple(_merge_frames(frames, join) for frames in zip(*(group.frames for group in groups), strict=True))
    return Group(batch, lanes, registers, first.block, frames, first.local_base)


def _merge_frames(frames: Sequence[Frame], join: Callable[[list[Value]], Value]) -> Frame:
    first = frames[0]
    saved = tuple(
        (register, join([frame.saved[position][1] for frame in frames]))
        for position, (register, _) in enumerate(first.saved)
    )
    return Frame(first.resume, saved, first.hand_back, first.local_base)


def _join(values: list[Value], counts: list[int], order: Places) -> Value:
    first = values[0]
    known = [value for value in values if value is not None]
    if not known:
        return first
    if not any(value.ndim for value in known) and all(value is not None and _same(value, first) for value in values):
        return first
    shape = next((value.shape[1:] for value in known if value.ndim), ())
    dtype = known[0].dtype
    parts = [
        np.zeros((count, *shape), dtype) if value is None else np.broadcast_to(value, (count, *shape))
        for value, count in zip(values, counts, strict=True)
    ]
    joined: Value = np.concatenate(parts)[order]
    return joined


def _same(left: Value, right: Value) -> bool:
    # Bits, not numbers: NaN equals itself and 0.0 differs from -0.0.
    return left.tobytes() == right.tobytes()
