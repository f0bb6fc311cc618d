"""Syntax tree of a PTX module, and iteration over the statements of a body.

Every node remembers the span of source text that it came from, so that an unchanged
node prints back exactly as it was written, comments aside.

The grammar is that of NVIDIA's PTX ISA reference, sections 4 (syntax), 5 (state spaces)
and 7 to 11 (instructions, directives).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

INSERTED_MARK: Final = "// tui-probe: "
"""Begins the comment at the end of every inserted line."""
REPLACED_MARK: Final = INSERTED_MARK + "instead of: "
"""Begins the comment at the end of a line that replaces an original one, quoted behind it."""


@dataclass(frozen=True, slots=True)
class Register:
    """A register or a special register: ``%r1``, ``%tid.x``, ``%clock64``, ``%p1``.

    ``selector`` is the vector component without its dot (``x`` in ``%tid.x``), or "".
    """

    name: str
    selector: str = ""

    def __str__(self) -> str:
        return f"{self.name}.{self.selector}" if self.selector else self.name


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal as written: ``16``, ``-1``, ``0x1F``, ``0f3F800000``, ``0d…``, ``1.5``, ``WARP_SZ``."""

    text: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name that is not a register: a label, a variable, a parameter, a function, the sink ``_``.

    ``offset`` is as in ``foo+4``.
    """

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Sum:
    """A register and what is added to it, outside of brackets: ``%r1+4``."""

    base: Register
    offset: int


@dataclass(frozen=True, slots=True)
class Memory:
    """An address in brackets. ``base`` is None for an absolute address.

    ``[%rd1+16]`` has a Register base and offset 16. A tensor operand ``[%rd1, {%r2, %r3}]``
    carries its coordinates.
    """

    base: Register | Symbol | None
    offset: int = 0
    coordinates: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a variable: ``table[%r3]``, ``table[2]``. The index counts elements, not bytes."""

    name: str
    index: Register | Immediate


@dataclass(frozen=True, slots=True)
class Vector:
    """Operands in braces: ``{%f1, %f2, _, 0}``."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two destinations joined by a bar: ``%p1|%p2``."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class OperandList:
    """Operands in parentheses, as a call has: ``(param0, param1)``."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Negated:
    """``!%p1`` or ``-%r1`` used as an operand. ``sign`` is the character as written."""

    sign: Literal["!", "-"]
    operand: Operand


@dataclass(frozen=True, slots=True)
class Raw:
    """Text that the parser does not understand; printed as it was."""

    text: str


Operand: TypeAlias = (
    Register | Immediate | Symbol | Sum | Memory | Element | Vector | Pair | OperandList | Negated | Raw
)


@dataclass(slots=True)
class Span:
    """Position of a node in its module's source: characters ``[start, end)``, first line (1-based)."""

    start: int
    end: int
    line: int


@dataclass(slots=True)
class Instruction:
    """One instruction.

    ``predicate`` is the guard register (None if unguarded) and ``predicate_negated`` tells ``@!%p``.
    ``modifiers`` are the parts after the opcode, in order, without dots: ``ld.global.v4.f32``
    is opcode ``ld``, modifiers ``("global", "v4", "f32")``. A ``::`` stays inside its modifier:
    ``("async", "shared::cluster")``.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    span: Span
    predicate: Register | None = None
    predicate_negated: bool = False


@dataclass(slots=True)
class Label:
    """``name:`` in a body.

    ``declaration`` is the source, from the dot to the semicolon, of the ``.branchtargets``, ``.calltargets``
    or ``.callprototype`` that the label names, or "".
    """

    name: str
    span: Span
    declaration: str = ""


@dataclass(slots=True)
class Location:
    """A ``.loc file line column`` directive; it holds for the instructions that follow."""

    file: int
    line: int
    column: int
    span: Span


@dataclass(slots=True)
class Variable:
    """A declaration: ``.reg .b32 %r<5>;``, ``.shared .align 4 .b8 tile[1024];``, ``.param .u64 x``.

    ``space`` is ``reg``, ``shared``, ``local``, ``global``, ``const``, ``param``, … ; ``type`` as ``b32``;
    ``vector`` 1, 2, 4 or 8; ``count`` the N of ``%r<N>`` (0 if not parameterised); ``shape`` the
    array extents, 0 for ``[]``. ``initializer`` is the source text after ``=``, or "".
    ``linkage`` is ``visible``, ``extern``, ``weak``, ``common`` or "".
    ``size_bytes`` is 0 for registers, opaque types and arrays without extent. Variables of one declaration
    (``.reg .b32 a, b;``) share its span.
    """

    space: str
    type: str
    name: str
    span: Span
    align: int = 0
    vector: int = 1
    count: int = 0
    shape: tuple[int, ...] = ()
    is_array: bool = False
    initializer: str = ""
    linkage: str = ""
    size_bytes: int = 0


@dataclass(slots=True)
class Directive:
    """Any other directive, kept as text: ``.pragma``, ``.file``, ``.section``, ``.version``, …

    ``name`` has no dot. ``text`` is the whole source of the directive.
    """

    name: str
    text: str
    span: Span


@dataclass(slots=True)
class Scope:
    """A ``{ … }`` block inside a body, with its own declarations."""

    body: list[Statement]
    span: Span


Statement: TypeAlias = Instruction | Label | Location | Variable | Directive | Scope


@dataclass(slots=True)
class Function:
    """An ``.entry`` (a kernel) or a ``.func``.

    ``body`` is None for a declaration without one; that of a parsed function is parsed when first read, and
    reading it raises PtxError if it is damaged. ``attributes`` are the performance directives between
    the parameters and the body (``.reqntid 256``, ``.noreturn``…), name without dot to the text of its
    arguments (``"256"``, ``""``).
    ``body_span`` covers the braces and what is between them.
    """

    kind: Literal["entry", "func"]
    name: str
    parameters: list[Variable]
    span: Span
    returns: list[Variable] = field(default_factory=list)
    linkage: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    body: list[Statement] | None = None
    body_span: Span | None = None


TopLevel: TypeAlias = Function | Variable | Directive


@dataclass(slots=True)
class Module:
    """One PTX translation unit. ``files`` maps the numbers of ``.file`` directives to paths."""

    source: str
    version: tuple[int, int]
    target: str
    address_size: int
    items: list[TopLevel]
    files: dict[int, str] = field(default_factory=dict)

    def functions(self) -> list[Function]:
        """Return all functions, in source order."""
        return [item for item in self.items if isinstance(item, Function)]

    def entries(self) -> list[Function]:
        """Return the kernels, in source order."""
        return [function for function in self.functions() if function.kind == "entry"]


def statements_in(body: Iterable[Statement]) -> Iterator[Statement]:
    """Yield all statements in source order; a scope's own come in its place."""
    for node in body:
        if isinstance(node, Scope):
            yield from statements_in(node.body)
        else:
            yield node


def instructions_in(body: Iterable[Statement]) -> Iterator[Instruction]:
    """Return all instructions in source order."""
    return (node for node in statements_in(body) if isinstance(node, Instruction))


def inserted_lines(text: str) -> frozenset[int]:
    """Return the lines that probes inserted into a text of PTX, counted from 1."""
    if INSERTED_MARK not in text:
        return frozenset()
    lines = enumerate(text.splitlines(), 1)
    return frozenset(number for number, line in lines if INSERTED_MARK in line and REPLACED_MARK not in line)
