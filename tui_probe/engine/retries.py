"""Loops of tries that are one site of a probe, for positions such as ``mbarrier.try_wait+``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.engine.positions import matches

if TYPE_CHECKING:
    from tui_probe.engine.model import ProbePoint
    from tui_probe.ptx.tree import Function, Instruction
    from tui_probe.ptx.wait_loops import Edge, WaitLoop


class Retries:
    """The loops in one kernel that wait for what a point is at. Instructions are known by where they stand."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._loops: dict[str, dict[int, WaitLoop]] = {}

    def loop_of(self, instruction: Instruction, point: ProbePoint) -> WaitLoop | None:
        """The loop that tries an instruction; None if it is in no such loop, or its point does not ask for one."""
        return self._of_point(point).get(instruction.span.start)

    def is_later_try(self, instruction: Instruction, point: ProbePoint) -> bool:
        """Whether an instruction belongs to a loop that an earlier one is the site of."""
        loop = self.loop_of(instruction, point)
        return loop is not None and loop.tries[0].span.start != instruction.span.start

    def entries(self, instruction: Instruction, point: ProbePoint) -> tuple[Edge, ...]:
        """The ways into the loop of an instruction."""
        loop = self.loop_of(instruction, point)
        return loop.entries if loop else ()

    def exits(self, instruction: Instruction, point: ProbePoint) -> tuple[Edge, ...]:
        """The ways out of the loop of an instruction."""
        loop = self.loop_of(instruction, point)
        return loop.exits if loop else ()

    def _of_point(self, point: ProbePoint) -> dict[int, WaitLoop]:
        wanted = [position for position in point.positions if position.retried]
        if not wanted:
            return {}
        if point.name not in self._loops:
            from tui_probe.ptx.wait_loops import wait_loops  # few probes ask for loops

            found = wait_loops(self._function, lambda one: any(matches(position, one) for position in wanted))
            self._loops[point.name] = {each.span.start: loop for loop in found for each in loop.tries}
        return self._loops[point.name]
