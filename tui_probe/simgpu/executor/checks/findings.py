"""Findings of checks: a fault of a kernel, with the instruction, the thread and the value.

An instruction is named by the text of its line and how many equal lines its function has before it: the same in the
program's image and in one that a probe was inserted into.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tui_probe.ptx.tree import Function, Module

Coordinates = tuple[int, int, int]

MAX_FINDINGS: Final = 100
"""Findings of a process: a program with more has been shown enough."""
_MAX_TEXT: Final = 120
_LINE: Final = re.compile(r"\bline (\d+)")
_WHERE: Final = re.compile(r"block \((\d+), (\d+), (\d+)\), thread \((\d+), (\d+), (\d+)\)")


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
    """Instructions of a module by line: function, text and occurrence."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._lines = module.source.split("\n")

    def site(self, line: int) -> dict[str, Any]:
        """The instruction at a line, as data."""
        function = self._function(line)
        first = function.span.line if function is not None else 1
        text = self._text(line)
        return {
            "function": function.name if function is not None else None,
            "text": text[:_MAX_TEXT],
            "occurrence": sum(self._text(number) == text for number in range(first, line)),
            "ptx_line": line,
        }

    def _text(self, line: int) -> str:
        return self._lines[line - 1].strip() if 0 < line <= len(self._lines) else ""

    def _function(self, line: int) -> Function | None:
        before = [item for item in self._module.functions() if item.span.line <= line and item.body is not None]
        return max(before, key=lambda item: item.span.line, default=None)


def finding_text(kernel: str, fault: Fault, sites: SiteTable) -> str:
    """A finding as JSON, in one line."""
    record = asdict(fault)
    record["address"] = None if fault.address is None else f"{fault.address:#x}"
    record |= {name: _place(place, sites) for name, place in (("place", fault.place), ("other", fault.other))}
    return json.dumps({"kernel": kernel, **record}, separators=(",", ":"))


def _place(place: AccessPlace | None, sites: SiteTable) -> dict[str, Any] | None:
    if place is None:
        return None
    return {"access": place.access, "block": place.block, "thread": place.thread, **sites.site(place.line)}


def place_in(message: str) -> AccessPlace:
    """The place that the message of an error names."""
    line, where = _LINE.search(message), _WHERE.search(message)
    number = int(line[1]) if line is not None else 0
    if where is None:
        return AccessPlace(number, "", None, None)
    numbers = [int(number) for number in where.groups()]
    return AccessPlace(number, "", (numbers[0], numbers[1], numbers[2]), (numbers[3], numbers[4], numbers[5]))
