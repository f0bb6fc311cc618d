"""Names of PTX registers for a probe's variables and for what expressions need in between."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tui_probe.engine.verify import SPECIAL_REGISTERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.dsl.expressions import Bits

Kind: TypeAlias = Literal["b64", "b32", "pred"]

_TEMPORARY: Final[dict[Kind, str]] = {"b64": "%v", "b32": "%w", "pred": "%p"}
_LOOKS_TEMPORARY: Final = re.compile(r"%[vwp]\d+")


class ProbeRegisters:
    """The registers of a whole probe: snippets share a name only where it has the same type."""

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}
        self._own: dict[str, str] = {}

    def declare(self, variable: str, bits: Bits) -> None:
        """Give a register of the probe a name that no local gets."""
        name = next(name for name in _candidates(variable) if name not in self._kinds)
        self._kinds[name] = kind_of(bits)
        self._own[variable] = name

    def own(self, variable: str) -> str | None:
        """The name of a register of the probe, None for any other variable."""
        return self._own.get(variable)

    def local(self, variable: str, kind: Kind, taken: set[str]) -> str:
        """A name for a local of one snippet, in which those of ``taken`` are used already."""
        taken = taken | set(self._own.values())
        name = next(name for name in _candidates(variable) if name not in taken and self._kinds.get(name, kind) == kind)
        self._kinds[name] = kind
        return name

    def kind(self, name: str) -> Kind:
        """The type of a register that was given a name here."""
        return self._kinds[name]


class SnippetRegisters:
    """The registers that one snippet uses, in the order of their first use."""

    def __init__(self, probe: ProbeRegisters) -> None:
        self._probe = probe
        self._locals: dict[tuple[str, Kind], str] = {}
        self._used: dict[str, Kind] = {}
        self._temporaries: dict[Kind, int] = {}

    def variable(self, name: str, bits: Bits) -> str:
        """The register of a variable."""
        register = self._probe.own(name)
        if register is None:
            key = (name, kind_of(bits))
            if key not in self._locals:
                self._locals[key] = self._probe.local(name, key[1], set(self._locals.values()))
            register = self._locals[key]
        self._used[register] = self._probe.kind(register)
        return register

    def temporary(self, kind: Kind) -> str:
        """A register that no other part of the statement uses."""
        number = self._temporaries.get(kind, 0)
        self._temporaries[kind] = number + 1
        register = f"{_TEMPORARY[kind]}{number}"
        self._used[register] = kind
        return register

    def next_statement(self) -> None:
        """Nothing in between outlives a statement: its registers are free again."""
        self._temporaries.clear()

    def declarations(self) -> list[str]:
        """``.reg`` lines for all registers used, those of a type in one."""
        lines = []
        for kind in _TEMPORARY:
            names = [name for name, found in self._used.items() if found == kind]
            if names:
                lines.append(f".reg .{kind} {', '.join(names)};")
        return lines


def kind_of(bits: Bits) -> Kind:
    """The type of a register for a value."""
    return "b64" if bits == 64 else "b32"


def _candidates(variable: str) -> Iterator[str]:
    """``%name``, ``%name_2``, …, without names that PTX or temporaries have."""
    name = f"%{variable}"
    if name not in SPECIAL_REGISTERS and not _LOOKS_TEMPORARY.fullmatch(name):
        yield name
    yield from (f"%{variable}_{number}" for number in count(2))
