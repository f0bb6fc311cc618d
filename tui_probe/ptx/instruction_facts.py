"""Facts about single PTX instructions: memory access, state space, types, widths, multiply-adds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tui_probe.ptx.instruction_classes import STATE_SPACES, class_of
from tui_probe.ptx.operands import parse_integer
from tui_probe.ptx.tree import Element, Function, Immediate, Instruction, Memory, Scope, Symbol, Variable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tui_probe.ptx.tree import Operand, Statement

AccessKind = Literal["load", "store", "atomic", "copy"]

TYPE_BYTES: Final = {
    **dict.fromkeys(("b8", "u8", "s8"), 1),
    **dict.fromkeys(("b16", "u16", "s16", "f16", "bf16"), 2),
    **dict.fromkeys(("b32", "u32", "s32", "f32", "f16x2", "bf16x2"), 4),
    **dict.fromkeys(("b64", "u64", "s64", "f64"), 8),
    "b128": 16,
}
VECTORS: Final = {"v2": 2, "v4": 4, "v8": 8}
_ACCESS_KINDS: Final[dict[str, AccessKind]] = {
    "ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "atomic", "cp": "copy",
}  # fmt: skip
_MATRIX_SHAPE: Final = re.compile(r"m(\d{1,9})n(\d{1,9})k(\d{1,9})")
_WARP: Final = 32
_ELEMENT_BITS: Final = {
    **dict.fromkeys(("f64",), 64),
    **dict.fromkeys(("f32", "s32", "tf32"), 32),
    **dict.fromkeys(("f16", "bf16"), 16),
    **dict.fromkeys(("s8", "u8"), 8),
    **dict.fromkeys(("s4", "u4"), 4),
    "b1": 1,
}


def access_kind(instruction: Instruction) -> AccessKind | None:
    """``copy`` is ``cp.async``, from global to shared memory. None for what is not an access."""
    return _ACCESS_KINDS.get(instruction.opcode)


def element_bytes(instruction: Instruction) -> int | None:
    """Bytes of an element: of the last type among the modifiers. None if there is none."""
    sizes = [TYPE_BYTES[modifier] for modifier in instruction.modifiers if modifier in TYPE_BYTES]
    return sizes[-1] if sizes else None


def access_bytes(instruction: Instruction) -> int | None:
    """Bytes that one thread accesses: all elements of a vector, the size that ``cp.async`` names."""
    if instruction.opcode == "cp":
        match instruction.operands:
            case (Memory(), Memory(), Immediate(text=text), *_):
                return parse_integer(text)
        return None
    size = element_bytes(instruction)
    vector = next((VECTORS[modifier] for modifier in instruction.modifiers if modifier in VECTORS), 1)
    return None if size is None else size * vector


def fragment_bytes(instruction: Instruction) -> int | None:
    """One thread's share of the matrix that ``wmma.load`` or ``wmma.store`` moves; None of others."""
    extents, modifiers = matrix_extents(instruction), instruction.modifiers
    kinds = [modifier for modifier in modifiers if modifier in _ELEMENT_BITS]
    if instruction.opcode != "wmma" or extents is None or not kinds or not {"load", "store"} & set(modifiers):
        return None
    m, n, k = extents
    elements = m * k if "a" in modifiers else k * n if "b" in modifiers else m * n
    return elements * _ELEMENT_BITS[kinds[-1]] // 8 // _WARP


def matrix_extents(instruction: Instruction) -> tuple[int, int, int] | None:
    """The m, n and k that a matrix instruction names: ``m16n8k16``; None of others."""
    for modifier in instruction.modifiers:
        if match := _MATRIX_SHAPE.fullmatch(modifier):
            return int(match[1]), int(match[2]), int(match[3])
    return None


# The state space of accesses that name no space but the variable itself: ``st.u32 [tile], 7;``.
#
# ptxas makes an access of the variable's space of them. The address of such a variable is an offset in its space: as
# a generic address it would lie somewhere else.

_SPACE_MODIFIERS: Final = frozenset(STATE_SPACES)


def named_spaces(functions: Iterable[Function], variables: Iterable[Variable]) -> dict[int, str]:
    """By the identity (``id``) of each such instruction the space. ``variables`` are those of the module."""
    of_module = _variable_spaces(variables)
    return {
        id(instruction): space
        for function in functions
        for instruction, space in _spaces_in_body(
            function.body or (), of_module | _variable_spaces([*function.parameters, *function.returns])
        )
    }


def _variable_spaces(nodes: Iterable[object]) -> dict[str, str]:
    return {node.name: node.space.partition("::")[0] for node in nodes if isinstance(node, Variable)}


def _spaces_in_body(statements: Iterable[Statement], outer: Mapping[str, str]) -> Iterator[tuple[Instruction, str]]:
    """The instructions of a scope, whose own names hide those around it."""
    statements = list(statements)
    spaces = {**outer, **_variable_spaces(statements)}
    for node in statements:
        if isinstance(node, Scope):
            yield from _spaces_in_body(node.body, spaces)
        elif isinstance(node, Instruction) and _names_no_space(node):
            named = [spaces[name] for name in map(_address_variable, node.operands) if name in spaces]
            yield from ((node, space) for space in named[:1] if space in _SPACE_MODIFIERS)


def _names_no_space(instruction: Instruction) -> bool:
    return not any(modifier.partition("::")[0] in _SPACE_MODIFIERS for modifier in instruction.modifiers)


def _address_variable(operand: Operand) -> str:
    """The variable that an address names, or ""."""
    match operand:
        case Memory(base=Symbol(name=name), coordinates=()) | Element(name=name):
            return name
    return ""


_TYPE_MODIFIER: Final = re.compile(r"[busf]\d+(?:x\d)?|bf16(?:x2)?|tf32|e\dm\d(?:x\d)?|ue8m0(?:x2)?|pred")
_FACT_SPACES: Final = frozenset({"global", "shared", "local", "const", "param"})


class PtxFacts(NamedTuple):
    """``opcode`` with modifiers; ``work``, one of ``instruction_classes.CLASSES``; the types and the state spaces among
    the modifiers, joined by dots in their order, "" without any; of an access its kind; and the bytes that one lane
    moves, its share where a warp moves a matrix.
    """

    opcode: str
    work: str
    type: str
    space: str
    access: AccessKind | None
    bytes: int | None


def facts_of(instruction: Instruction) -> PtxFacts:
    """The facts of an instruction. ``bytes`` is None where it moves none, and where its text does not tell."""
    access = access_kind(instruction)
    return PtxFacts(
        opcode=full_name(instruction),
        work=class_of(instruction),
        type=".".join(filter(_TYPE_MODIFIER.fullmatch, instruction.modifiers)),
        space=".".join(modifier for modifier in instruction.modifiers if modifier.partition("::")[0] in _FACT_SPACES),
        access=access,
        bytes=access_bytes(instruction) if access else fragment_bytes(instruction),
    )


def full_name(instruction: Instruction) -> str:
    """The opcode with its modifiers: ``ld.global.f32``."""
    return ".".join((instruction.opcode, *instruction.modifiers))


_WARPGROUP: Final = 128


def multiply_adds(instruction: Instruction) -> int | None:
    """One thread's share of the m·n·k multiply-adds of ``mma``, ``wmma.mma`` or ``wgmma.mma_async``; None of others.

    A warp works on the first two, four warps on the last, which gives a whole number for every shape there is. A
    sparse instruction counts the multiply-adds with the zeros that it leaves out, as its shape does.
    ``mma.m8n8k4`` on f16 is four products, one by each eight lanes.
    """
    extents = matrix_extents(instruction)
    if extents is None or instruction.opcode not in ("mma", "wmma", "wgmma"):
        return None
    m, n, k = extents
    products = 4 if instruction.opcode == "mma" and extents == (8, 8, 4) and "f64" not in instruction.modifiers else 1
    return products * m * n * k // (_WARPGROUP if instruction.opcode == "wgmma" else _WARP)
