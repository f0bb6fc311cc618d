"""Where the address in a register led, for the accesses at other offsets from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_probe.simgpu.executor.lanes import Lanes
    from tui_probe.simgpu.executor.memory import Space
    from tui_probe.simgpu.executor.scalars import Value


@dataclass(slots=True)
class Located:
    """What was found for the value ``register`` of a register plus ``added``, for ``lanes``.

    ``lowest`` and ``highest`` are the extremes of ``offset``, -1 until they are needed.
    """

    register: Value
    lanes: Lanes
    added: int
    space: Space
    offset: Value
    index: Value
    lowest: int = -1
    highest: int = -1

    def steps(self, added: int, size: int) -> int | None:
        """How many elements further an access at ``added`` is; None if it must be looked at anew."""
        if added == self.added:
            return 0
        steps, rest = divmod(added - self.added, size)
        if rest or steps < 0:
            return None
        if self.lowest < 0:
            self.lowest = int(self.offset.min())
            self.highest = int(self.offset.max())
        inside = self.highest + added - self.added + size <= self.space.limit
        return steps if inside else None
