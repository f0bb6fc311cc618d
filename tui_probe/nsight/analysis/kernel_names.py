"""The same kernel under the names that different tools give it.

ncu writes ``f<(int)4, float>(float *, T1)`` where the C++ runtime writes ``void f<4, float>(float*, int)``. Two names
are the same if they are equal without spaces, or if the function is the same and nothing else in the lists is like it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.nsight.analysis.launch_groups import Shape

Item = TypeVar("Item")
_OPEN: Final = {"<": 1, "(": 1, "[": 1, "{": 1, ">": -1, ")": -1, "]": -1, "}": -1}


def function_of(name: str) -> str:
    """``void at::f<4>(int)`` -> ``at::f``: what is outside of all brackets, without the return type."""
    depth, kept = 0, []
    for character in re.sub(r"\(anonymous namespace\)|<unnamed>", "_", name):
        step = _OPEN.get(character, 0)
        depth = max(depth + step, 0)
        if not depth and not step:
            kept.append(character)
    words = "".join(kept).removesuffix(" const").split()
    return words[-1] if words else name


def matched(
    first: Sequence[Item], second: Sequence[Item], shape: Callable[[Item], Shape]
) -> list[tuple[Item | None, Item | None]]:
    """Pairs of the same kernel with the same grid and block; None where the other list lacks it."""
    left = list(second)
    pairs: list[tuple[Item | None, Item | None]] = []
    for item in first:
        partner = _partner(shape(item), first, left, shape)
        if partner is not None:
            left.remove(partner)
        pairs.append((item, partner))
    return pairs + [(None, item) for item in left]


def _partner(wanted: Shape, own: Sequence[Item], others: Sequence[Item], shape: Callable[[Item], Shape]) -> Item | None:
    for key in (_exact, _by_function):
        like = [item for item in others if key(shape(item)) == key(wanted)]
        alone = key is _exact or sum(key(shape(item)) == key(wanted) for item in own) == 1
        if len(like) == 1 and alone:
            return like[0]
    return None


def _exact(shape: Shape) -> object:
    return re.sub(r"\s", "", shape.kernel), shape.grid, shape.block


def _by_function(shape: Shape) -> object:
    return function_of(shape.kernel), shape.grid, shape.block
