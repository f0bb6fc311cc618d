"""What a probe file declares: maps, registers, constants and functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast

    from tui_probe.dsl.expressions import Bits
    from tui_probe.engine.model import Position


@dataclass(frozen=True, slots=True)
class DeclaredMap:
    """A class under ``@Map``. ``fields`` are names and types in order; ``size`` is in bytes, None if not given.

    ``reduce`` says whose records results keep the sums of, "" if they keep all.
    """

    name: str
    level: str
    type: str
    size: int | None
    cap: int
    fields: tuple[tuple[str, str], ...]
    node: ast.ClassDef
    reduce: str = ""


@dataclass(frozen=True, slots=True)
class DeclaredRegister:
    """A module-level variable: a register of each thread with the value that it has at the kernel's entry."""

    name: str
    bits: Bits
    initial: int


@dataclass(frozen=True, slots=True)
class ProbeFunction:
    """A function under ``@probe``. ``position`` is the text of ``positions``; ``level`` is None if not given."""

    name: str
    position: str
    positions: tuple[Position, ...]
    level: str | None
    before: bool
    node: ast.FunctionDef

    @property
    def is_entry(self) -> bool:
        """Tell whether it runs at the kernel's entry, and nowhere else."""
        return self.before and all(position.is_kernel for position in self.positions)


@dataclass(slots=True)
class Program:
    """A whole probe file. Names are unique across all four kinds."""

    callback: str = ""
    about: dict[str, str] = field(default_factory=dict)
    maps: dict[str, DeclaredMap] = field(default_factory=dict)
    registers: dict[str, DeclaredRegister] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    functions: dict[str, ProbeFunction] = field(default_factory=dict)
