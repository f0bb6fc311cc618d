"""Loops with a bound that is known when the probe is compiled."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.dsl.arithmetic import MAX_U64
from tui_probe.dsl.building import constant
from tui_probe.dsl.source import Source, words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tui_probe.dsl.expressions import Bits

MAX_ITERATIONS: Final = 1024
"""Of a loop, and of loops inside each other together: a probe runs at each of its positions in each thread."""


@dataclass(frozen=True, slots=True)
class Loop:
    """``for name in range(…)``: ``values`` are what the name takes on, at least one, none negative."""

    name: str
    values: range

    @property
    def bound(self) -> int:
        """The largest value."""
        return max(self.values[0], self.values[-1])

    @property
    def bits(self) -> Bits:
        """The width of the register that counts."""
        return 32 if self.bound < 1 << 32 else 64


def read_loop(node: ast.For, constants: Mapping[str, int], source: Source) -> Loop:
    """The loop of a ``for`` statement. Raises ProbeFileError."""
    match node:
        case ast.For(
            target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=bounds, keywords=[]), orelse=[]
        ) if 1 <= len(bounds) <= 3:
            numbers = [_signed(constant(bound, constants, source)) for bound in bounds]
        case _:
            raise source.error(node, f"'{words(node).partition(':')[0]}': a loop is 'for i in range(4):', without else")
    if len(numbers) == 3 and numbers[2] == 0:
        raise source.error(node, "the step of range is 0: it must be another number")
    values = range(*numbers)
    if not values:
        raise source.error(node, f"{values} is empty: the loop never runs; remove it")
    if values[0] < 0 or values[-1] < 0:
        raise source.error(node, f"{name} would be negative in {values}: numbers are unsigned, count from 0")
    if len(values) > MAX_ITERATIONS:
        raise source.error(node, f"{values} has {len(values)} values: at most {MAX_ITERATIONS} are allowed")
    return Loop(name, values)


def _signed(number: int) -> int:
    """Bounds may be negative, such as the -1 of ``range(3, -1, -1)``."""
    return number - (MAX_U64 + 1) if number >> 63 else number
