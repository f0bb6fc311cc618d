"""Facts about PTX instructions: names and classes, memory access, state space, types, widths, multiply-adds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tui_probe.ptx.operands import parse_integer
from tui_probe.ptx.tree import Element, Function, Immediate, Instruction, Memory, Scope, Symbol, Variable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tui_probe.ptx.tree import Operand, Statement

# Names and classes of PTX instructions, and the number of SASS instructions that each becomes.
#
#     fp32 fp64        arithmetic and comparison on f32, on f64
#     fp16 bf16        on f16, on bf16, also packed in pairs
#     integer          arithmetic, comparison, shifts and logic on integers, bits and predicates
#     tensor           mma, wmma.mma, wgmma.mma_async, tcgen05.mma
#     load             ld, ldmatrix, wmma.load, textures and surfaces, cp.async and bulk copies into shared memory
#     store            st, stmatrix, wmma.store, surfaces, bulk copies and reductions out of shared memory
#     atomic           atom, red
#     branch           bra, brx, call, ret, exit
#     barrier          bar, barrier, mbarrier, fences, and waiting for copies or for wgmma
#     other            moves, conversions, parameters, shuffles and votes, hints
#
# These are instructions of PTX. The assembler makes none of some (``ld.param``) and several of others (``div``).

OPCODES: Final = frozenset(
    re.findall(
        r"\S+",
        """
        abs activemask add addc alloca and applypriority atom bar barrier bfe bfi bfind bmsk bra brev brkpt brx
        call clusterlaunchcontrol clz cnot copysign cos cp createpolicy cvt cvta discard div dp2a dp4a elect ex2
        exit fence fma fns getctarank griddepcontrol isspacep istypep ld ldmatrix ldu lg2 lop3 mad mad24 madc
        mapa match max mbarrier membar min mma mov movmatrix mul mul24 multimem nanosleep neg not or pmevent
        popc prefetch prefetchu prmt rcp red redux rem ret rsqrt sad selp set setmaxnreg setp shf shfl shl shr
        sin slct sqrt st stackrestore stacksave stmatrix sub subc suld suq sured sust szext tanh tcgen05
        tensormap testp tex tld4 trap txq vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax
        vmax2 vmax4 vmin vmin2 vmin4 vote vset vset2 vset4 vshl vshr vsub vsub2 vsub4 wgmma wmma xor
        """,
    )
)
STATE_SPACES: Final = ("global", "shared", "local", "param", "const")
"""Modifiers for the memory that an instruction accesses."""
CLASSES: Final = (
    "fp32", "fp64", "fp16", "bf16", "integer", "tensor", "load", "store", "atomic", "branch", "barrier", "other",
)  # fmt: skip

_CLASS_BY_OPCODE: Final = {
    **dict.fromkeys(("ld", "ldu", "ldmatrix", "tex", "tld4", "suld"), "load"),
    **dict.fromkeys(("st", "stmatrix", "sust"), "store"),
    **dict.fromkeys(("atom", "red", "sured"), "atomic"),
    **dict.fromkeys(("bra", "brx", "call", "ret", "exit"), "branch"),
    **dict.fromkeys(("bar", "barrier", "mbarrier", "membar", "fence"), "barrier"),
    "mma": "tensor",
}
_ARITHMETIC: Final = frozenset(
    re.findall(
        r"\S+",
        """
        add sub mul mad fma div rem abs neg min max sqrt rsqrt rcp sin cos lg2 ex2 tanh copysign testp set setp
        addc subc madc mul24 mad24 sad and or xor not cnot shl shr shf lop3 bfe bfi bfind brev bmsk szext prmt
        popc clz fns dp2a dp4a vadd vsub vmad vmin vmax vshl vshr vset
        """,
    )
)
_CLASS_BY_TYPE: Final = {
    **dict.fromkeys(("f32", "f32x2"), "fp32"),
    "f64": "fp64",
    **dict.fromkeys(("f16", "f16x2"), "fp16"),
    **dict.fromkeys(("bf16", "bf16x2"), "bf16"),
}
_CLASS_BY_PART: Final = {
    "load": "load", "ld": "load", "store": "store", "st": "store", "mma": "tensor", "mma_async": "tensor",
    "fence": "barrier", "wait_group": "barrier", "wait": "barrier",
}  # fmt: skip


def class_of(instruction: Instruction) -> str:
    """Return the class of an instruction, one of ``CLASSES``."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode in _ARITHMETIC:
        kinds = [modifier for modifier in modifiers if modifier in _CLASS_BY_TYPE]
        return _CLASS_BY_TYPE[kinds[-1]] if kinds else "integer"
    if opcode in ("wmma", "wgmma", "tcgen05"):
        return next((_CLASS_BY_PART[modifier] for modifier in modifiers[:1] if modifier in _CLASS_BY_PART), "other")
    if opcode == "cp":
        return _class_of_copy(modifiers)
    if opcode in ("ld", "st") and any(modifier.partition("::")[0] == "param" for modifier in modifiers):
        return "other"
    return _CLASS_BY_OPCODE.get(opcode, "other")


def _class_of_copy(modifiers: tuple[str, ...]) -> str:
    """``cp.async`` in all its forms: copies, and what waits for them."""
    if any(modifier.startswith("wait_") for modifier in modifiers):
        return "barrier"
    if "bulk_group" in modifiers:
        return "store"
    if any(modifier.partition("::")[0] == "shared" for modifier in modifiers):
        return "load"
    return "other"


# Number of SASS instructions per PTX instruction, where it is known not to be one.
#
# ptxas makes about a dozen of a division or a root: the numbers are the instructions executed for operands of usual
# size, as ``python -m tests.bench.expansions`` reads them from SASS for sm_90 (for sm_80 some are one less). It drops
# most of class ``other``: moves and parameters become operands, and conversions of integers parts of registers. All
# other instructions become about one each: some are folded into others, some are split into halves of 64 bits.

_EXPANSIONS: Final = {
    ("sqrt", "rn", "f32"): 9, ("sqrt", "approx", "f32"): 5, ("sqrt", "rn", "f64"): 17,
    ("rcp", "rn", "f32"): 9, ("rcp", "approx", "f32"): 8, ("rcp", "rn", "f64"): 10, ("rcp", "approx", "f64"): 2,
    ("rsqrt", "approx", "f32"): 5, ("rsqrt", "approx", "f64"): 13,
    ("sin", "approx", "f32"): 2, ("cos", "approx", "f32"): 2, ("ex2", "approx", "f32"): 5, ("lg2", "approx", "f32"): 5,
    ("div", "rn", "f32"): 9, ("div", "full", "f32"): 10, ("div", "approx", "f32"): 7, ("div", "rn", "f64"): 15,
    ("div", "", "s32"): 25, ("div", "", "u32"): 18, ("rem", "", "s32"): 22, ("rem", "", "u32"): 17,
    ("div", "", "s64"): 89, ("div", "", "u64"): 73, ("rem", "", "s64"): 83, ("rem", "", "u64"): 69,
    ("mul", "lo", "s64"): 4, ("mul", "lo", "u64"): 4, ("mul", "hi", "u64"): 7, ("mul", "hi", "s64"): 7,
    ("max", "", "f64"): 9, ("min", "", "f64"): 9,
}  # fmt: skip
_SCALED_OPCODES: Final = frozenset({"sqrt", "rsqrt", "ex2", "lg2", "rcp"})
"""Approximations that scale denormal numbers of f32, and are one instruction with ``.ftz``."""
_ROUNDINGS: Final = ("rn", "rz", "rm", "rp", "approx", "full", "lo", "hi")
"""Modifiers that choose an algorithm: of products of integers, the half of the result."""
_DIRECTED_ROUNDINGS: Final = frozenset({"rz", "rm", "rp"})
_WARP_OPCODES: Final = frozenset({"shfl", "vote", "match", "redux", "activemask"})
_REAL_TYPES: Final = frozenset({"f16", "bf16", "f32", "f64", "e4m3x2", "e5m2x2", "f16x2", "bf16x2", "tf32"})


def sass_instruction_count(instruction: Instruction) -> int:
    """Estimate how many SASS instructions are executed for an instruction of PTX."""
    modifiers = instruction.modifiers
    if class_of(instruction) == "other":
        converts = instruction.opcode == "cvt" and any(modifier in _REAL_TYPES for modifier in modifiers)
        return int(converts or instruction.opcode in _WARP_OPCODES)
    type_ = modifiers[-1] if modifiers else ""
    rounding = next((modifier for modifier in modifiers if modifier in _ROUNDINGS), "")
    rounding = "rn" if rounding in _DIRECTED_ROUNDINGS else rounding
    if "ftz" in modifiers and (rounding, type_) == ("approx", "f32") and instruction.opcode in _SCALED_OPCODES:
        return 1
    return _EXPANSIONS.get((instruction.opcode, rounding, type_), 1)


AccessKind = Literal["load", "store", "atomic", "copy"]

TYPE_BYTES: Final = {
    **dict.fromkeys(("b8", "u8", "s8"), 1),
    **dict.fromkeys(("b16", "u16", "s16", "f16", "bf16"), 2),
    **dict.fromkeys(("b32", "u32", "s32", "f32", "f16x2", "bf16x2"), 4),
    **dict.fromkeys(("b64", "u64", "s64", "f64"), 8),
    "b128": 16,
}
"""Bytes of a value by PTX type; predicates have none."""
TYPE_BITS: Final = {name: size * 8 for name, size in TYPE_BYTES.items()}
VECTORS: Final = {"v2": 2, "v4": 4, "v8": 8}
_ACCESS_KINDS: Final[dict[str, AccessKind]] = {
    "ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "atomic", "cp": "copy",
}  # fmt: skip
_MATRIX_SHAPE: Final = re.compile(r"m(\d{1,9})n(\d{1,9})k(\d{1,9})")
_WARP: Final = 32
_ELEMENT_BITS: Final = {
    **{name: TYPE_BITS[name] for name in ("f64", "f32", "s32", "f16", "bf16", "s8", "u8")},
    "tf32": 32,
    "s4": 4,
    "u4": 4,
    "b1": 1,
}
"""Bits of a matrix element by PTX type."""


def access_kind(instruction: Instruction) -> AccessKind | None:
    """Return the kind of an access; None for other instructions. ``copy`` is ``cp.async``, global to shared memory."""
    return _ACCESS_KINDS.get(instruction.opcode)


def element_bytes(instruction: Instruction) -> int | None:
    """Return the bytes of an element, by the last type among the modifiers; None without a type."""
    sizes = [TYPE_BYTES[modifier] for modifier in instruction.modifiers if modifier in TYPE_BYTES]
    return sizes[-1] if sizes else None


def access_bytes(instruction: Instruction) -> int | None:
    """Return the bytes that one thread accesses: all elements of a vector, or the size that ``cp.async`` names."""
    if instruction.opcode == "cp":
        match instruction.operands:
            case (Memory(), Memory(), Immediate(text=text), *_):
                return parse_integer(text)
        return None
    size = element_bytes(instruction)
    vector = next((VECTORS[modifier] for modifier in instruction.modifiers if modifier in VECTORS), 1)
    return None if size is None else size * vector


def fragment_bytes(instruction: Instruction) -> int | None:
    """Return a thread's bytes of the matrix that ``wmma.load`` or ``wmma.store`` moves; None for others."""
    extents, modifiers = matrix_extents(instruction), instruction.modifiers
    kinds = [modifier for modifier in modifiers if modifier in _ELEMENT_BITS]
    if instruction.opcode != "wmma" or extents is None or not kinds or not {"load", "store"} & set(modifiers):
        return None
    m, n, k = extents
    elements = {"a": m * k, "b": k * n, "c": m * n, "d": m * n}
    matrix = next((modifier for modifier in modifiers if modifier in elements), "d")
    return elements[matrix] * _ELEMENT_BITS[kinds[-1]] // 8 // _WARP


def matrix_extents(instruction: Instruction) -> tuple[int, int, int] | None:
    """Return the m, n and k that a matrix instruction names: ``m16n8k16``; None of others."""
    for modifier in instruction.modifiers:
        if match := _MATRIX_SHAPE.fullmatch(modifier):
            return int(match[1]), int(match[2]), int(match[3])
    return None


# The state space of accesses that name a variable instead of a space: ``st.u32 [tile], 7;``.
#
# ptxas accesses the space of the variable. The address of such a variable is an offset in its space: as a generic
# address it would lie somewhere else.


def named_spaces(functions: Iterable[Function], variables: Iterable[Variable]) -> dict[int, str]:
    """Return the space of each instruction in generic form, by its ``id``. ``variables`` are those of the module."""
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
    """Yield the instructions of a scope, whose own names hide those around it."""
    statements = list(statements)
    spaces = {**outer, **_variable_spaces(statements)}
    for node in statements:
        if isinstance(node, Scope):
            yield from _spaces_in_body(node.body, spaces)
        elif isinstance(node, Instruction) and _names_no_space(node):
            named_spaces = [spaces[name] for name in map(_address_variable, node.operands) if name in spaces]
            yield from ((node, space) for space in named_spaces[:1] if space in STATE_SPACES)


def _names_no_space(instruction: Instruction) -> bool:
    return not any(modifier.partition("::")[0] in STATE_SPACES for modifier in instruction.modifiers)


def _address_variable(operand: Operand) -> str:
    """Return the variable that an address names, or ""."""
    match operand:
        case Memory(base=Symbol(name=name), coordinates=()) | Element(name=name):
            return name
    return ""


_TYPE_MODIFIER: Final = re.compile(r"[busf]\d+(?:x\d)?|bf16(?:x2)?|tf32|e\dm\d(?:x\d)?|ue8m0(?:x2)?|pred")


class PtxFacts(NamedTuple):
    """Facts of an instruction.

    ``opcode`` has the modifiers. ``work`` is its class, one of ``CLASSES``. ``type`` and ``space`` are the types and
    state spaces among the modifiers, joined by dots, "" without any. ``access`` is the kind of an access. ``bytes`` are
    those that one lane moves: its share where a warp moves a matrix.
    """

    opcode: str
    work: str
    type: str
    space: str
    access: AccessKind | None
    bytes: int | None


def facts_of(instruction: Instruction) -> PtxFacts:
    """Return the facts of an instruction. ``bytes`` is None where it moves none, and where its text does not tell."""
    access = access_kind(instruction)
    return PtxFacts(
        opcode=full_name(instruction),
        work=class_of(instruction),
        type=".".join(filter(_TYPE_MODIFIER.fullmatch, instruction.modifiers)),
        space=".".join(modifier for modifier in instruction.modifiers if modifier.partition("::")[0] in STATE_SPACES),
        access=access,
        bytes=access_bytes(instruction) if access else fragment_bytes(instruction),
    )


def full_name(instruction: Instruction) -> str:
    """Return the opcode with its modifiers: ``ld.global.f32``."""
    return ".".join((instruction.opcode, *instruction.modifiers))


_WARPGROUP: Final = 128


def multiply_adds(instruction: Instruction) -> int | None:
    """Return a thread's share of the m·n·k multiply-adds of ``mma``, ``wmma.mma`` or ``wgmma.mma_async``; None for
    others.

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
