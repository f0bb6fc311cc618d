"""A probe file in Python: its source, the declarations in it, and the helpers for a probed instruction."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.dsl.expressions import Operand
from tui_probe.errors import ProbeFileError
from tui_probe.probe_model.positions import BLOCK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.dsl.expressions import Bits
    from tui_probe.probe_model.positions import Position

_MAX_SOURCE_BYTES: Final = 1 << 20
_NESTING_ERROR: Final = "the expression is nested too deeply; assign parts of it to variables"
HELPER_NAMES: Final = {
    "addr": "ADDR", "bytes": "BYTES", "out": "OUT", "in1": "IN1", "in2": "IN2", "in3": "IN3", "line": "LINE",
    "multiply_adds": "MULTIPLY_ADDS", "instructions": "INSTRUCTIONS", "issued": "ISSUED",
}  # fmt: skip
"""Helpers of snippets by the names of a probed instruction's parts."""
_OPERANDS: Final = ("out", "in1", "in2", "in3")
"""Names of operands, in the order of an instruction."""
_MEMORY_OPERANDS: Final = {
    "ld": ("value", "address"),
    "st": ("address", "value"),
    "atom": ("value", "address", "value", "value"),
    "red": ("address", "value"),
}
"""Operands of an instruction: the address of memory, or a value of the instruction's type."""
_ARITHMETIC: Final = frozenset({"add", "sub", "mul", "mad", "fma", "min", "max", "div", "rem", "and", "or", "xor"})
_WRITERS: Final = _ARITHMETIC | {"ld", "atom"}
_TYPES: Final[dict[str, Literal[32, 64]]] = {
    **dict.fromkeys(("b32", "u32", "s32", "f32"), 32),
    **dict.fromkeys(("b64", "u64", "s64", "f64"), 64),
}
_NUMBER_HELPERS: Final = ("bytes", "line", "multiply_adds", "instructions", "issued")
_PACKED_MODIFIERS: Final = frozenset({"v2", "v4", "v8", "wide", "f16", "f16x2", "bf16", "bf16x2"})


@dataclass(frozen=True, slots=True)
class ProbeSource:
    """A probe file. ``path`` is for messages; nothing is read from it."""

    path: str
    text: str

    def tree(self) -> ast.Module:
        """Return the file's syntax tree. Raises ProbeFileError."""
        if len(self.text) > _MAX_SOURCE_BYTES:
            raise ProbeFileError(f"{self.path}: the file has {len(self.text)} characters, too many for a probe")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(self.text)
        except SyntaxError as error:
            raise ProbeFileError(f"{self.path}, line {error.lineno or 1}: this is not Python: {error.msg}") from error
        except ValueError as error:  # a null byte, in Python 3.11.2; later a SyntaxError without a line
            raise ProbeFileError(f"{self.path}, line 1: this is not Python: {error}") from error
        except (RecursionError, MemoryError) as error:
            raise ProbeFileError(f"{self.path}: {_NESTING_ERROR}") from error

    def error(self, node: ast.AST, message: str) -> ProbeFileError:
        """Return the error for a node: file, line, what is wrong and what to write instead."""
        return ProbeFileError(f"{self.path}, line {getattr(node, 'lineno', 1)}: {message}")

    def nesting_error(self) -> ProbeFileError:
        """Return the error for a file whose nesting exceeds what can be compiled."""
        return ProbeFileError(f"{self.path}: {_NESTING_ERROR}")


def source_text(node: ast.AST) -> str:
    """Return a node as Python text on one line, shortened, for messages and comments."""
    text = " ".join(ast.unparse(node).split())
    text = text.encode("ascii", "backslashreplace").decode("ascii")
    return text if len(text) <= 80 else text[:79] + "~"


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
    runs_before: bool
    node: ast.FunctionDef

    @property
    def is_entry(self) -> bool:
        """Return whether it runs at the kernel's entry, and nowhere else."""
        return self.runs_before and all(position.is_kernel for position in self.positions)


@dataclass(slots=True)
class Program:
    """A whole probe file. Names are unique across all four kinds."""

    callback: str = ""
    about_table: dict[str, str] = field(default_factory=dict)
    maps: dict[str, DeclaredMap] = field(default_factory=dict)
    registers: dict[str, DeclaredRegister] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    functions: dict[str, ProbeFunction] = field(default_factory=dict)


class ProbedOperands:
    """The parts of the instructions at the positions of one probe function.

    ``addr`` has 64 bits, ``bytes`` and other numbers have 32, for any instruction. The width of ``out`` and ``in1`` to
    ``in3`` is that of the kernel's register: saved as they are they need no width; in an expression the position
    determines it.
    """

    def __init__(self, source: ProbeSource, positions: Sequence[Position], *, runs_before: bool) -> None:
        self._source = source
        self._positions = positions
        self._runs_before = runs_before

    def operand(self, node: ast.Name, *, is_saved: bool) -> Operand:
        """Return the part that a name stands for; ``is_saved`` where it is saved and nothing else. Raises
        ProbeFileError.
        """
        if any(position.is_kernel for position in self._positions):
            raise self._source.error(
                node, f"{node.id} describes an instruction; it is not available at position 'kernel'"
            )
        self._check_block_helper(node)
        if node.id == "addr":
            return Operand("ADDR", 64)
        if node.id in _NUMBER_HELPERS:
            return Operand(HELPER_NAMES[node.id], 32)
        if node.id == "out" and self._runs_before and any(p.opcode in _WRITERS for p in self._positions):
            raise self._source.error(node, "'out' has no value before the instruction; use before=False")
        widths = {self._width(position, node.id) for position in self._positions}
        width = widths.pop() if len(widths) == 1 else 0
        if not width and not is_saved:
            raise self._source.error(
                node,
                f"the width of {node.id} depends on the instruction; save it without a calculation, "
                f"'X.save({node.id})', or name a type in the position, such as pos='st.global.f32'",
            )
        return Operand(HELPER_NAMES[node.id], 0 if is_saved else width)

    def _check_block_helper(self, node: ast.Name) -> None:
        """Refuse helpers of basic blocks at instructions, and helpers of instructions at blocks."""
        if node.id in ("instructions", "issued") and any(position.opcode != BLOCK for position in self._positions):
            raise self._source.error(
                node, f"{node.id} describes a basic block; use it at pos='block' or 'block.load' only"
            )
        if node.id not in ("instructions", "issued", "line") and any(
            position.is_block or position.is_source for position in self._positions
        ):
            raise self._source.error(
                node, f"{node.id} describes an instruction; it is not available at 'block', 'loop' and source lines"
            )

    def _width(self, position: Position, name: str) -> Literal[0, 32, 64]:
        if position.opcode in _MEMORY_OPERANDS:
            kinds = _MEMORY_OPERANDS[position.opcode]
        else:
            kinds = ("value",) * len(_OPERANDS) if position.opcode in _ARITHMETIC else ()
        kind = dict(zip(_OPERANDS, kinds, strict=False)).get(name, "")
        if kind == "address":
            return 64
        types = [_TYPES[modifier] for modifier in position.modifiers if modifier in _TYPES]
        is_scalar = not _PACKED_MODIFIERS.intersection(position.modifiers)
        return types[0] if kind and is_scalar and len(types) == 1 else 0
