"""Types of the values in registers, from the instructions that write them.

PTX registers of 16, 32 and 64 bits hold anything, and a store of ``.b32`` does not say what. The instruction that made
the value often does: ``add.f32``, ``cvt.rn.bf16x2.f32``, ``mma…f32…``. Moves, selections and shuffles hand on what they
were given, packing and unpacking joins and parts it. A register with several writers has a type only if they agree;
constants agree with anything. A load from shared memory has the type of the stores between the two barriers before it,
where nothing branches in between and nothing else writes there, as code has that rearranges a tile among threads; or
else the type that all stores to shared memory have. Everything else (bit arithmetic, other loads, calls) is
unknown: None.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from tui_probe.ptx.instruction_facts import VECTORS, element_bytes
from tui_probe.ptx.tree import (
    Element,
    Immediate,
    Instruction,
    Label,
    Memory,
    Negated,
    Pair,
    Register,
    Scope,
    Sum,
    Symbol,
    Vector,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tui_probe.ptx.tree import Function, Operand, Statement

Elements = tuple[str, ...]
"""The numbers in a value, lowest bits first: ``f16 bf16 f32 f64``, or ``int`` for a whole number of any width."""

FLOAT_BITS: Final = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
ANYTHING: Final[Elements] = ()
"""A constant, which is of whatever type it is used as."""

_PACKED: Final[dict[str, Elements]] = {
    "f16": ("f16",), "bf16": ("bf16",), "f32": ("f32",), "f64": ("f64",), "tf32": ("f32",),
    "f16x2": ("f16",) * 2, "bf16x2": ("bf16",) * 2, "f32x2": ("f32",) * 2,
}  # fmt: skip
_INTEGERS: Final = frozenset(f"{sign}{bits}" for sign in "us" for bits in (8, 16, 32, 64))
_UNTYPED: Final = frozenset(f"b{bits}" for bits in (8, 16, 32, 64, 128))
_OTHER: Final = frozenset({"e4m3", "e5m2", "e4m3x2", "e5m2x2", "e2m1x2", "e2m3x2", "e3m2x2", "ue8m0x2"})
_TYPES: Final = _PACKED.keys() | _INTEGERS | _UNTYPED | _OTHER
_FULL_WIDTH_TYPES: Final = frozenset({"u32", "s32", "u64", "s64"})
_ARITHMETIC: Final = frozenset(
    {
        "add", "sub", "mul", "fma", "mad", "div", "min", "max", "neg", "abs", "sqrt", "rsqrt", "rcp", "ex2", "lg2",
        "sin", "cos", "tanh", "copysign", "set", "cvt", "atom",
    }
)  # fmt: skip
_MOVE_OPCODES: Final = frozenset({"mov", "shfl"})
_MATRICES: Final = ("mma", "mma_async")
_UNDECIDED: Final = "undecided"


class ValueTypes:
    """The types of the registers of one function."""

    def __init__(self, function: Function) -> None:
        self._writers: dict[str, list[tuple[Instruction, int | None]]] = defaultdict(list)
        for one in _nodes(function.body or ()):
            if isinstance(one, Instruction):
                for name, place in _written_registers(one):
                    self._writers[name].append((one, place))
        self._shared = _SharedStores(function)
        self._known: dict[str, Elements | None] = dict.fromkeys(self._writers, ANYTHING)
        self._settle()

    def of_register(self, name: str) -> Elements | None:
        """The numbers in a register, ``ANYTHING`` for a constant, or None."""
        return self._known.get(name)

    def of_stored(self, instruction: Instruction) -> list[tuple[str, Elements | None]]:
        """The registers that a store writes to memory, each with the numbers in it."""
        otherwise = ("int",) if _first_type(instruction) in _INTEGERS else None
        return [(name, found or otherwise or found) for name, found in self._stored(instruction)]

    def untold(self, store: Instruction) -> bool:
        """Whether a store may write numbers though nothing tells of which type, or that they are of one."""
        kinds = {each for _, elements in self.of_stored(store) for each in (("?",) if elements is None else elements)}
        return len(kinds) > 1 or "?" in kinds

    def _stored(self, one: Instruction) -> list[tuple[str, Elements | None]]:
        named = _first_type(one)
        told = ("f16", "f16") if one.opcode == "wmma" and named == "f16" else _PACKED.get(named)
        size = 32 if one.opcode in ("wmma", "stmatrix") else 8 * (element_bytes(one) or 0)
        values = (value for value in _flat_operands(one.operands[1:2]) if isinstance(value, Register))
        return [(value.name, told or _low_elements(self.of_register(value.name), size)) for value in values]

    def _settle(self) -> None:
        """Begin with what constants are and take in what each writer says, until nothing changes any more.

        A type only ever goes from a constant's to one type to unknown, so this ends, and gives the same in any order.
        """
        changed = True
        while changed:
            changed = False
            for name, writers in self._writers.items():
                found = _common_type([self._known[name], *(self._result(one, place) for one, place in writers)])
                if found != self._known[name]:
                    self._known[name], changed = found, True

    def _result(self, one: Instruction, place: int | None) -> Elements | None:
        """What an instruction writes; ``place`` is the register's in a vector of destinations, or None."""
        kind = _first_type(one)
        if any(modifier in _MATRICES for modifier in (one.opcode, *one.modifiers[:1])):
            return ("f16", "f16") if kind == "f16" else _PACKED.get(kind)
        if one.opcode in ("ld", "ldu", "ldmatrix"):
            return self._loaded(one, kind)
        if kind in _PACKED and (one.opcode in _ARITHMETIC or one.opcode in ("mov", "selp", "tex", "slct")):
            return _PACKED[kind]
        if one.opcode == "selp":
            return _common_type(self._operand(operand) for operand in one.operands[1:3])
        if one.opcode in _MOVE_OPCODES and len(one.operands) > 1:
            return _vector_part(self._operand(one.operands[1]), place, one)
        return ("int",) if kind in _INTEGERS else None

    def _operand(self, operand: Operand) -> Elements | None:
        match operand:
            case Register(name=name, selector=""):
                return ("int",) if name.startswith("%") and name in _SPECIAL else self.of_register(name)
            case Immediate(text=text):
                return {"0f": ("f32",), "0d": ("f64",)}.get(text[:2].lower(), ANYTHING)
            case Negated(operand=inner) | Sum(base=inner):
                return self._operand(inner)
            case Vector(elements):
                return _packed_type([self._operand(element) for element in elements])
        return None

    def _loaded(self, one: Instruction, kind: str) -> Elements | None:
        if kind in _PACKED:
            return _PACKED[kind]
        if one.opcode == "ldmatrix" or any(name.startswith("shared") for name in one.modifiers):
            element = self._element_of(self._shared.before(one)) or self._element_of(self._shared.all)
            size = 4 if one.opcode == "ldmatrix" else element_bytes(one) or 0
            if element == _UNDECIDED:
                return ANYTHING
            return (element,) * (size * 8 // FLOAT_BITS[element]) or None if element in FLOAT_BITS else None
        vector = any(modifier in VECTORS for modifier in one.modifiers)
        return ("int",) if kind in _FULL_WIDTH_TYPES and not vector else None

    def _element_of(self, stores: Sequence[Instruction]) -> str | None:
        """The one type of number that these store, if they have one."""
        found: set[str | None] = set()
        for one in stores:
            for _, elements in self._stored(one):
                found.update((None,) if elements is None else elements)
        if stores and not found:
            return _UNDECIDED
        return next(iter(found)) if len(found) == 1 else None


class _SharedStores:
    """The stores to shared memory of one function: ``all``, and those whose values a load finds.

    Empty where something else writes there as well: copies, atomics, stores that may go anywhere.
    """

    def __init__(self, function: Function) -> None:
        nodes = list(_nodes(function.body or ()))
        targets = {
            operand.name
            for one in nodes
            if isinstance(one, Instruction) and one.opcode == "bra"
            for operand in one.operands
            if isinstance(operand, Symbol)
        }
        self.all: tuple[Instruction, ...] = ()
        self._before: dict[int, tuple[Instruction, ...]] = {}
        stores: list[Instruction] | None = []
        ended: tuple[Instruction, ...] = ()
        plain = True
        for node in nodes:
            if isinstance(node, Label):
                if node.name in targets or node.declaration:
                    stores, ended = [], ()
            elif node.opcode in ("bra", "brx", "call"):
                stores, ended = [], ()
            elif node.opcode in ("bar", "barrier"):
                stores, ended = [], tuple(stores or ())
            elif _loads_shared(node):
                self._before[id(node)] = ended
            elif _stores_shared(node):
                self.all += (node,)
                if stores is not None:
                    stores.append(node)
            elif _writes_shared_otherwise(node):
                plain, stores, ended = False, None, ()
        self.all = self.all if plain else ()

    def before(self, load: Instruction) -> tuple[Instruction, ...]:
        """The stores between the two barriers before a load, in code without branches."""
        return self._before.get(id(load), ())


def _spaces(one: Instruction) -> set[str]:
    return {modifier.partition("::")[0] for modifier in one.modifiers}


def _loads_shared(one: Instruction) -> bool:
    return one.opcode == "ldmatrix" or (one.opcode == "ld" and "shared" in _spaces(one))


def _stores_shared(one: Instruction) -> bool:
    return one.opcode == "stmatrix" or (one.opcode == "st" and "shared" in _spaces(one))


def _writes_shared_otherwise(one: Instruction) -> bool:
    if one.opcode == "st":
        return not {"global", "local", "param"}.intersection(_spaces(one))
    return one.opcode in ("cp", "atom", "red") and "shared" in _spaces(one)


_SPECIAL: Final = frozenset({"%tid", "%ntid", "%ctaid", "%nctaid", "%laneid", "%warpid", "%smid", "%clock", "%clock64"})


def _nodes(body: Iterable[Statement]) -> Iterator[Instruction | Label]:
    for node in body:
        if isinstance(node, Scope):
            yield from _nodes(node.body)
        elif isinstance(node, Instruction | Label):
            yield node


def _written_registers(one: Instruction) -> Iterator[tuple[str, int | None]]:
    """The registers that an instruction writes, with their places in a vector."""
    if one.opcode in ("st", "red", "bra", "bar") or not one.operands:
        return
    first = one.operands[0]
    if isinstance(first, Pair):
        first = first.first
    if isinstance(first, Vector):
        yield from ((each.name, place) for place, each in enumerate(first.elements) if isinstance(each, Register))
    elif isinstance(first, Register):
        yield first.name, None


def _flat_operands(operands: Iterable[Operand]) -> Iterator[Operand]:
    for operand in operands:
        if isinstance(operand, Vector):
            yield from operand.elements
        elif not isinstance(operand, Memory | Element):
            yield operand


def _first_type(one: Instruction) -> str:
    """The first type among the modifiers, which is that of the result."""
    return next((modifier for modifier in one.modifiers if modifier in _TYPES), "")


def _common_type(types: Iterable[Elements | None]) -> Elements | None:
    """What all say, constants aside; None if they differ or one is unknown."""
    found = set(types) - {ANYTHING}
    if not found:
        return ANYTHING
    return found.pop() if len(found) == 1 else None


def _packed_type(parts: list[Elements | None]) -> Elements | None:
    """The numbers of a value packed from parts; a constant part is of the type of the others."""
    known = {part for part in parts if part}
    if None in parts or len(known) > 1:
        return None
    return known.pop() * len(parts) if known else ANYTHING


def _low_elements(elements: Elements | None, size: int) -> Elements | None:
    """The numbers in the lowest ``size`` bits of a value, which are all that a store takes; None if it cuts one."""
    for count in range(1, len(elements or ()) + 1):
        kept = (elements or ())[:count]
        if kept == ("int",) or sum(FLOAT_BITS.get(each, size) for each in kept) == size:
            return kept
    return None if elements else elements


def _vector_part(whole: Elements | None, place: int | None, one: Instruction) -> Elements | None:
    """What goes to one register of a vector that a value is unpacked to."""
    if place is None or not whole or not isinstance(one.operands[0], Vector):
        return whole
    number = len(one.operands[0].elements)
    size, rest = divmod(len(whole), number)
    return None if rest else whole[place * size : (place + 1) * size]
