"""Launches grouped by process and shape, and kernels matched between two tools."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tui_probe.nsight.importers.ncu_table import Extent, NcuTable

Item = TypeVar("Item")
_BRACKET_STEPS: Final = {"<": 1, "(": 1, "[": 1, "{": 1, ">": -1, ")": -1, "]": -1, "}": -1}


class Shape(NamedTuple):
    """A kernel with one grid and block: one name may stand for several configurations."""

    kernel: str
    grid: Extent | None
    block: Extent | None


@dataclass(frozen=True, slots=True)
class Session:
    """The launches of one process, by position in the table and in order; ``codes`` numbers the shape of each."""

    file: int
    process: int | None
    launches: Sequence[int]
    codes: Sequence[int]
    shapes: Sequence[Shape]

    def launches_of_shape(self, code: int) -> list[int]:
        """Launches of one shape."""
        return [launch for launch, launch_code in zip(self.launches, self.codes, strict=True) if launch_code == code]


def shape_of(table: NcuTable, launch: int) -> Shape:
    row = table.launches[launch]
    return Shape(row.kernel, row.grid, row.block)


def sessions_of(table: NcuTable) -> list[Session]:
    """Return every process of every file; summaries have no launches and so are in none."""
    sessions = []
    for launches in table.sessions():
        codes: dict[Shape, int] = {}
        numbers = [codes.setdefault(shape_of(table, launch), len(codes)) for launch in launches]
        first_launch = table.launches[launches[0]]
        sessions.append(Session(first_launch.file, first_launch.process, launches, numbers, list(codes)))
    return sessions


def function_name(name: str) -> str:
    """``void at::f<4>(int)`` -> ``at::f``: what is outside of all brackets, without the return type."""
    depth, characters = 0, []
    for character in re.sub(r"\(anonymous namespace\)|<unnamed>", "_", name):
        step = _BRACKET_STEPS.get(character, 0)
        depth = max(depth + step, 0)
        if not depth and not step:
            characters.append(character)
    parts = "".join(characters).removesuffix(" const").split()
    return parts[-1] if parts else name


def match_kernels(
    items: Sequence[Item], candidates: Sequence[Item], shape: Callable[[Item], Shape]
) -> list[tuple[Item | None, Item | None]]:
    """Return pairs of the same kernel with the same grid and block; None where the other list lacks it.

    ncu writes ``f<(int)4, float>(float *, T1)`` where the C++ runtime writes ``void f<4, float>(float*, int)``. Two
    names are the same if they are equal without spaces, or if the function is the same and nothing else in the lists
    is like it.
    """
    unmatched = list(candidates)
    pairs: list[tuple[Item | None, Item | None]] = []
    for item in items:
        match = _matching_item(shape(item), items, unmatched, shape)
        if match is not None:
            unmatched.remove(match)
        pairs.append((item, match))
    return pairs + [(None, item) for item in unmatched]


def _matching_item(
    wanted_shape: Shape, items: Sequence[Item], candidates: Sequence[Item], shape: Callable[[Item], Shape]
) -> Item | None:
    for key in (_exact_key, _function_key):
        matches = [item for item in candidates if key(shape(item)) == key(wanted_shape)]
        is_unique = key is _exact_key or sum(key(shape(item)) == key(wanted_shape) for item in items) == 1
        if len(matches) == 1 and is_unique:
            return matches[0]
    return None


def _exact_key(shape: Shape) -> object:
    return re.sub(r"\s", "", shape.kernel), shape.grid, shape.block


def _function_key(shape: Shape) -> object:
    return function_name(shape.kernel), shape.grid, shape.block


def search_names(names: Iterable[str], text: str) -> frozenset[str]:
    """The names that are the text or continue with no letter, digit or underscore after it; without one those with it
    anywhere.

    So “Step 40” means “Step 40 to 50” and not “Step 400”. Upper and lower case are the same.
    """
    distinct_names = frozenset(names)
    pattern = re.compile(re.escape(text) + r"(?!\w)", re.IGNORECASE)
    matches = frozenset(name for name in distinct_names if pattern.match(name))
    return matches or frozenset(name for name in distinct_names if text.lower() in name.lower())
