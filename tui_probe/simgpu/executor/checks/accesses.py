"""Accesses as checks see them, and faults of a kernel: the instruction, the thread and the value.

An instruction is named by the text of its line and how many equal lines its function has before it: the same in the
program's image and in one that a probe was inserted into.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tui_probe.ptx.tree import REPLACED_MARK
from tui_probe.simgpu.executor.checks.access_clock import BULK, COPIED, STRONG, STRONG_BLOCK, STRONG_CLUSTER, TRACKED
from tui_probe.simgpu.executor.scalars import U8

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.ptx.tree import Function, Module
    from tui_probe.simgpu.executor.lanes import Lanes, Places
    from tui_probe.simgpu.executor.memory import Space
    from tui_probe.simgpu.executor.scalars import Value


class AccessKind(NamedTuple):
    """Kind of an instruction that accesses memory; ``flag`` is part of its stamps.

    A strong access may race with its like within its scope. ``is_release`` makes earlier accesses visible to those who
    see it, ``is_acquire`` may see another thread's.
    """

    name: str
    is_read: bool
    is_write: bool
    flag: int = 0
    is_release: bool = False
    is_acquire: bool = False

    @property
    def code(self) -> int:
        """Number of the name in ``ACCESS_NAMES``."""
        return ACCESS_NAMES.index(self.name)

    @property
    def scope(self) -> int:
        """Strength of its stamps, 0 of a weak access."""
        return self.flag & STRONG


ATOMIC: Final = "atomic"
ACCESS_NAMES: Final = ("load", "store", ATOMIC, "copy")
LOAD: Final = AccessKind("load", is_read=True, is_write=False)
STORE: Final = AccessKind("store", is_read=False, is_write=True)
COPY: Final = AccessKind("copy", is_read=False, is_write=True, flag=COPIED)
TRACKED_COPY: Final = AccessKind("copy", is_read=False, is_write=True, flag=TRACKED)
BULK_LOAD: Final = AccessKind("load", is_read=True, is_write=False, flag=BULK)
BULK_STORE: Final = AccessKind("copy", is_read=False, is_write=True, flag=BULK)
ARRIVAL: Final = AccessKind(ATOMIC, is_read=False, is_write=True, flag=STRONG)
"""An operation of an mbarrier, which needs an order with its initialization only."""
_STRONG_MODIFIERS: Final = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})
_RELEASE_MODIFIERS: Final = frozenset({"release", "acq_rel"})


def scope_of(modifiers: Sequence[str]) -> int:
    """The strength of an instruction with these modifiers; without a scope, that of the GPU."""
    if "cta" in modifiers:
        return STRONG_BLOCK
    return STRONG_CLUSTER if "cluster" in modifiers else STRONG


def load_kind(modifiers: Sequence[str]) -> AccessKind:
    """The kind of a load with these modifiers."""
    if _STRONG_MODIFIERS.isdisjoint(modifiers):
        return LOAD
    return LOAD._replace(flag=scope_of(modifiers), is_acquire=True)


def store_kind(modifiers: Sequence[str]) -> AccessKind:
    """The kind of a store with these modifiers."""
    if _STRONG_MODIFIERS.isdisjoint(modifiers):
        return STORE
    return STORE._replace(flag=scope_of(modifiers), is_release="release" in modifiers)


def atomic_kind(opcode: str, modifiers: Sequence[str]) -> AccessKind:
    """The kind of ``atom`` or ``red`` with these modifiers. What is exchanged may be uninitialised."""
    releases = not _RELEASE_MODIFIERS.isdisjoint(modifiers)
    acquires = opcode == "atom" or releases
    is_read, scope = "exch" not in modifiers, scope_of(modifiers)
    return AccessKind(ATOMIC, is_read=is_read, is_write=True, flag=scope, is_release=releases, is_acquire=acquires)


def index_of(elements: Value) -> slice | Value:
    """Elements, one per lane or one for all, as an index: a slice if they are evenly spaced."""
    if not elements.ndim:
        return slice(int(elements), int(elements) + 1)
    first_element, last_element, steps = int(elements[0]), int(elements[-1]), len(elements) - 1
    step = int(elements[1]) - first_element if steps else 1
    if step > 0 and last_element - first_element == step * steps and bool((elements[1:] - elements[:-1] == step).all()):
        return slice(first_element, last_element + 1, step)
    return elements


def range_of(elements: slice | Value) -> tuple[int, int]:
    """The least element of such an index, and the end of the greatest."""
    return (
        (elements.start, elements.stop)
        if isinstance(elements, slice)
        else (int(elements.min()), int(elements.max()) + 1)
    )


def gather(words: Value, elements: slice | Value) -> Value:
    """Rows of ``words``: shape (accesses, words of each)."""
    if isinstance(elements, slice):
        return words[elements]
    if words.shape[1] == 1:
        return words.reshape(-1).take(elements)[:, None]
    rows: Value = _as_rows(words).take(elements).view(words.dtype).reshape(-1, words.shape[1])
    return rows


def scatter(words: Value, elements: slice | Value, values: Value) -> None:
    """Set all words of rows to the value of each; of equal rows the last value stays."""
    if isinstance(elements, slice):
        words[elements] = values[:, None]
    elif words.shape[1] == 1:
        words.reshape(-1)[elements] = values
    else:
        _as_rows(words)[elements] = _as_rows(np.repeat(values[:, None], words.shape[1], axis=1))


def _as_rows(words: Value) -> Value:
    return words.view(np.dtype((np.void, words.shape[1] * words.dtype.itemsize)))[:, 0]


class CheckedAccess(NamedTuple):
    """An executed access: ``elements`` are numbers of elements of ``size`` bytes from the start of ``space``.

    ``positions`` are those of its lanes among ``lanes``, None for all; ``value`` is what is stored, if that is known.
    """

    kind: AccessKind
    line: int
    size: int
    space: Space
    elements: Value
    lanes: Lanes
    positions: Places | None = None
    value: Value | None = None

    def position(self, number: int) -> int:
        """The position among ``lanes`` of one of its own."""
        return number if self.positions is None else int(self.positions[number])

    def element(self, number: int) -> int:
        """The index of one of its lanes."""
        return int(self.elements[number] if self.elements.ndim else self.elements)

    def value_text(self, number: int) -> str | None:
        """The value that one of its lanes stores or finds, as a hexadecimal number."""
        if self.value is None:
            start = self.element(number) * self.size
            return hexadecimal(self.space.view(U8)[start : start + self.size])
        return hexadecimal(self.value[self.position(number)] if self.value.ndim else self.value)


def hexadecimal(value: Value) -> str:
    """The bytes of a value as a hexadecimal number."""
    return f"{int.from_bytes(value.tobytes(), 'little'):#x}"


Coordinates = tuple[int, int, int]


def coordinates(linear: int, extents: Coordinates) -> Coordinates:
    """Return the index in x, y and z of a block or thread, which count x first."""
    width, height, _ = extents
    return linear % width, linear // width % height, linear // (width * height)


MAX_FINDINGS: Final = 100
"""Findings of a process: a program with more has been shown enough."""
_MAX_TEXT: Final = 120
_CONSTANT_LOAD: Final = re.compile(r"^(@\S+\s+)?ldu?\.(\w+\.)*const\b")
_LINE_PATTERN: Final = re.compile(r"\bline (\d+)")
_THREAD_PATTERN: Final = re.compile(r"block \((\d+), (\d+), (\d+)\), thread \((\d+), (\d+), (\d+)\)")


@dataclass(frozen=True, slots=True)
class AccessPlace:
    """An instruction and the thread that executed it. ``line`` is that of the executed PTX."""

    line: int
    access: str
    block: Coordinates | None
    thread: Coordinates | None


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, as a check reports it. ``value`` is what was read, stored or found, as a hexadecimal number.

    ``detail`` describes the memory of an address, or the threads of a barrier.
    """

    kind: str
    place: AccessPlace
    space: str = ""
    size: int | None = None
    address: int | None = None
    value: str | None = None
    count: int = 1
    detail: str = ""
    other: AccessPlace | None = None


class SiteTable:
    """Instructions of a module by line: function, text and occurrence; of a replaced one, those of the program."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._lines = module.source.split("\n")

    def site(self, line: int) -> dict[str, Any]:
        """The instruction at a line, as data."""
        function = self._function(line)
        first_line = function.span.line if function is not None else 1
        text = self._instruction_text(line)
        return {
            "function": function.name if function is not None else None,
            "text": text[:_MAX_TEXT],
            "occurrence": sum(self._instruction_text(number) == text for number in range(first_line, line)),
            "ptx_line": line,
        }

    def _instruction_text(self, line: int) -> str:
        text = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        return (text.partition(REPLACED_MARK)[2] or text).strip()

    def _function(self, line: int) -> Function | None:
        functions = [item for item in self._module.functions() if item.span.line <= line and item.body is not None]
        return max(functions, key=lambda item: item.span.line, default=None)


def finding_text(kernel: str, fault: Fault, sites: SiteTable) -> str:
    """A finding as JSON, in one line."""
    record = asdict(fault)
    record["address"] = None if fault.address is None else f"{fault.address:#x}"
    record |= {name: _place_record(place, sites) for name, place in (("place", fault.place), ("other", fault.other))}
    if fault.space == "global" and _CONSTANT_LOAD.search(record["place"]["text"]):
        record["space"] = "constant"  # which is in device memory here
    return json.dumps({"kernel": kernel, **record}, separators=(",", ":"))


def _place_record(place: AccessPlace | None, sites: SiteTable) -> dict[str, Any] | None:
    if place is None:
        return None
    return {"access": place.access, "block": place.block, "thread": place.thread, **sites.site(place.line)}


def place_in(message: str) -> AccessPlace:
    """The place that the message of an error names."""
    line_match, thread_match = _LINE_PATTERN.search(message), _THREAD_PATTERN.search(message)
    number = int(line_match[1]) if line_match is not None else 0
    if thread_match is None:
        return AccessPlace(number, "", None, None)
    numbers = [int(number) for number in thread_match.groups()]
    return AccessPlace(number, "", (numbers[0], numbers[1], numbers[2]), (numbers[3], numbers[4], numbers[5]))
