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
from functools import cached_property
from typing import TYPE_CHECKING, Final

from tui_probe.ptx.assembler_effects import Accumulators, FusedProducts, is_full_wait
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
_INFINITY: Final = {32: 0x7F80_0000, 64: 0x7FF0_0000_0000_0000}
ANYTHING: Final[Elements] = ()
"""A constant, which is of any type it is used as."""

_PACKED: Final[dict[str, Elements]] = {
    "f16": ("f16",), "bf16": ("bf16",), "f32": ("f32",), "f64": ("f64",), "tf32": ("f32",),
    "f16x2": ("f16",) * 2, "bf16x2": ("bf16",) * 2, "f32x2": ("f32",) * 2,
}  # fmt: skip
_INTEGERS: Final = frozenset(f"{sign}{bits}" for sign in "us" for bits in (8, 16, 32, 64))
_UNTYPED: Final = frozenset(f"b{bits}" for bits in (8, 16, 32, 64, 128))
_SMALL_FLOATS: Final = frozenset({"e4m3", "e5m2", "e4m3x2", "e5m2x2", "e2m1x2", "e2m3x2", "e3m2x2", "ue8m0x2"})
_TYPES: Final = _PACKED.keys() | _INTEGERS | _UNTYPED | _SMALL_FLOATS
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
"""Type of stored constants, which are of any type."""
_SPECIAL: Final = frozenset({"%tid", "%ntid", "%ctaid", "%nctaid", "%laneid", "%warpid", "%smid", "%clock", "%clock64"})


class ValueTypes:
    """The types of the registers of one function."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._writers: dict[str, list[tuple[Instruction, int | None]]] = defaultdict(list)
        for instruction in _nodes(function.body or ()):
            if isinstance(instruction, Instruction):
                for name, place in _written_registers(instruction):
                    self._writers[name].append((instruction, place))
        self.fused = FusedProducts(function)
        self._shared_stores = _SharedStores(function)
        self._elements: dict[str, Elements | None] = dict.fromkeys(self._writers, ANYTHING)
        self._infer_elements()

    def register_elements(self, name: str) -> Elements | None:
        """Return the numbers in a register, ``ANYTHING`` for a constant, or None."""
        return self._elements.get(name)

    def stored_elements(self, instruction: Instruction) -> list[tuple[str, Elements | None]]:
        """Return the registers that a store writes to memory, each with the numbers in it."""
        integer_elements = ("int",) if _first_type(instruction) in _INTEGERS else None
        return [
            (name, elements or integer_elements or elements) for name, elements in self._stored_elements(instruction)
        ]

    def result_elements(self, instruction: Instruction) -> list[tuple[str, Elements | None]]:
        """Return the registers that an instruction writes, each with the numbers that it puts there.

        Products that ptxas may fuse with a sum are left out: reading one changes the sum. A wait for ``wgmma`` writes
        the accumulators that may be read from there on.
        """
        if is_full_wait(instruction):
            products = self._accumulators.products(instruction)
            return list(dict.fromkeys(result for product in products for result in self.result_elements(product)))
        return [
            (name, self._written_elements(instruction, place))
            for name, place in _written_registers(instruction)
            if name not in self.fused
        ]

    def input_elements(self, instruction: Instruction) -> list[tuple[str, Elements]] | None:
        """Return the registers of floating-point numbers that arithmetic reads, each with the numbers in it.

        A product that ptxas may fuse is replaced by its factors; None if they are not known, or if a part of a vector
        is read. Literals of the kernel, which come from nowhere else, are left out. ``mov`` and ``selp`` count only
        where they bring in a literal NaN, as powf does for a negative base: None for others.
        """
        if instruction.opcode in ("mov", "selp") and not self._brings_nan(instruction):
            return None
        if any(isinstance(value, Register) and value.selector for value in _flat_operands(instruction.operands[1:])):
            return None
        inputs: list[tuple[str, Elements]] = []
        for name, elements in self._read_elements(instruction):
            factors = self.fused.factors(name) if name in self.fused else [name]
            if factors is None:
                return None
            inputs += [(factor, elements) for factor in factors]
        return [pair for pair in dict.fromkeys(inputs) if pair[0] not in self._literals]

    def _brings_nan(self, instruction: Instruction) -> bool:
        """Return whether a move or a selection takes a literal NaN to a register that may hold other numbers."""
        is_literal = any(name in self._literals for name, _ in _written_registers(instruction))
        return not is_literal and any(map(self._is_nan, instruction.operands[1:3]))

    def _is_nan(self, operand: Operand) -> bool:
        if isinstance(operand, Register):
            writers = self._writers.get(operand.name, ()) if operand.name in self._literals else ()
            return any(self._is_nan(writer.operands[1]) for writer, _ in writers)
        bits = _float_bits(operand.text) if isinstance(operand, Immediate) else None
        return bits is not None and bits[0] & ~(1 << bits[1] - 1) > _INFINITY[bits[1]]

    @cached_property
    def _literals(self) -> frozenset[str]:
        """The registers that only moves of immediate operands write."""
        return frozenset(
            name for name, writers in self._writers.items() if all(_moves_literal(writer) for writer, _ in writers)
        )

    @cached_property
    def _accumulators(self) -> Accumulators:
        return Accumulators(self._function)

    def _read_elements(self, instruction: Instruction) -> list[tuple[str, Elements]]:
        kinds = [modifier for modifier in instruction.modifiers if modifier in _TYPES]
        is_matrix = instruction.opcode in _MATRICES or "mma" in instruction.modifiers
        if is_matrix and len(kinds) == 2:  # of wmma, whose factors are halves where it names the type of sums only
            kinds = [kinds[0], "f16", "f16", kinds[1]]
        operands = instruction.operands[1 : {"selp": 3}.get(instruction.opcode, 4)]
        operand_kinds = kinds[1:4] if is_matrix else kinds[-1:] * len(operands)
        return [
            (value.name, elements)
            for operand, kind in zip(operands, operand_kinds, strict=False)
            for value in _flat_operands([operand])
            if isinstance(value, Register) and (elements := _in_register(kind, is_matrix=is_matrix))
        ]

    def may_be_number(self, store: Instruction) -> bool:
        """Return whether a store may write numbers though their type, or that they have one, is unknown."""
        kinds = {
            element
            for _, elements in self.stored_elements(store)
            for element in (("?",) if elements is None else elements)
        }
        return len(kinds) > 1 or "?" in kinds

    def _stored_elements(self, instruction: Instruction) -> list[tuple[str, Elements | None]]:
        kind = _first_type(instruction)
        elements = ("f16", "f16") if instruction.opcode == "wmma" and kind == "f16" else _PACKED.get(kind)
        size = 32 if instruction.opcode in ("wmma", "stmatrix") else 8 * (element_bytes(instruction) or 0)
        values = (value for value in _flat_operands(instruction.operands[1:2]) if isinstance(value, Register))
        return [(value.name, elements or _low_elements(self.register_elements(value.name), size)) for value in values]

    def _infer_elements(self) -> None:
        """Begin with what constants are and take in what each writer says, until nothing changes any more.

        A type only ever goes from a constant's to one type to unknown, so this ends, and gives the same in any order.
        """
        has_changed = True
        while has_changed:
            has_changed = False
            for name, writers in self._writers.items():
                elements = _common_type(
                    [self._elements[name], *(self._written_elements(writer, place) for writer, place in writers)]
                )
                if elements != self._elements[name]:
                    self._elements[name], has_changed = elements, True

    def _written_elements(self, instruction: Instruction, place: int | None) -> Elements | None:
        """Return the elements that an instruction writes; ``place`` is the register's in a vector of destinations, or
        None.
        """
        kind = _first_type(instruction)
        if any(modifier in _MATRICES for modifier in (instruction.opcode, *instruction.modifiers[:1])):
            return ("f16", "f16") if kind == "f16" else _PACKED.get(kind)
        if instruction.opcode in ("ld", "ldu", "ldmatrix"):
            return self._loaded_elements(instruction, kind)
        if kind in _PACKED and (
            instruction.opcode in _ARITHMETIC or instruction.opcode in ("mov", "selp", "tex", "slct")
        ):
            return _PACKED[kind]
        if instruction.opcode == "selp":
            return _common_type(self._operand_elements(operand) for operand in instruction.operands[1:3])
        if instruction.opcode in _MOVE_OPCODES and len(instruction.operands) > 1:
            return _vector_part(self._operand_elements(instruction.operands[1]), place, instruction)
        return ("int",) if kind in _INTEGERS else None

    def _operand_elements(self, operand: Operand) -> Elements | None:
        match operand:
            case Register(name=name, selector=""):
                return ("int",) if name.startswith("%") and name in _SPECIAL else self.register_elements(name)
            case Immediate(text=text):
                return {"0f": ("f32",), "0d": ("f64",)}.get(text[:2].lower(), ANYTHING)
            case Negated(operand=inner) | Sum(base=inner):
                return self._operand_elements(inner)
            case Vector(elements):
                return _packed_type([self._operand_elements(element) for element in elements])
        return None

    def _loaded_elements(self, instruction: Instruction, kind: str) -> Elements | None:
        if kind in _PACKED:
            return _PACKED[kind]
        if instruction.opcode == "ldmatrix" or any(name.startswith("shared") for name in instruction.modifiers):
            return self._shared_elements(instruction)
        vector = any(modifier in VECTORS for modifier in instruction.modifiers)
        return ("int",) if kind in _FULL_WIDTH_TYPES and not vector else None

    def _shared_elements(self, load: Instruction) -> Elements | None:
        element = self._element_of(self._shared_stores.stores_before(load)) or self._element_of(
            self._shared_stores.all_stores
        )
        if element == _UNDECIDED:
            return ANYTHING
        if element not in FLOAT_BITS:
            return None
        size = 4 if load.opcode == "ldmatrix" else element_bytes(load) or 0
        return (element,) * (size * 8 // FLOAT_BITS[element]) or None  # None: a register has a part of a number

    def _element_of(self, stores: Sequence[Instruction]) -> str | None:
        """Return the one type of number that these store, if they have one."""
        element_types: set[str | None] = set()
        for store in stores:
            for _, elements in self._stored_elements(store):
                element_types.update((None,) if elements is None else elements)
        if stores and not element_types:
            return _UNDECIDED
        return next(iter(element_types)) if len(element_types) == 1 else None


class _SharedStores:
    """The stores to shared memory of one function: ``all_stores``, and those whose values a load finds.

    Empty where something else writes there as well: copies, atomics, stores that may go anywhere.
    """

    def __init__(self, function: Function) -> None:
        nodes = list(_nodes(function.body or ()))
        targets = {
            operand.name
            for node in nodes
            if isinstance(node, Instruction) and node.opcode == "bra"
            for operand in node.operands
            if isinstance(operand, Symbol)
        }
        self.all_stores: tuple[Instruction, ...] = ()
        self._stores_by_load: dict[int, tuple[Instruction, ...]] = {}
        stores: list[Instruction] | None = []
        completed_stores: tuple[Instruction, ...] = ()
        is_complete = True
        for node in nodes:
            if isinstance(node, Label):
                if node.name in targets or node.declaration:
                    stores, completed_stores = [], ()
            elif node.opcode in ("bra", "brx", "call"):
                stores, completed_stores = [], ()
            elif node.opcode in ("bar", "barrier"):
                stores, completed_stores = [], tuple(stores or ())
            elif _loads_shared(node):
                self._stores_by_load[id(node)] = completed_stores
            elif _stores_shared(node):
                self.all_stores += (node,)
                if stores is not None:
                    stores.append(node)
            elif _writes_shared_otherwise(node):
                is_complete, stores, completed_stores = False, None, ()
        self.all_stores = self.all_stores if is_complete else ()

    def stores_before(self, load: Instruction) -> tuple[Instruction, ...]:
        """Return the stores between the two barriers before a load, in code without branches."""
        return self._stores_by_load.get(id(load), ())


def _spaces(instruction: Instruction) -> set[str]:
    return {modifier.partition("::")[0] for modifier in instruction.modifiers}


def _loads_shared(instruction: Instruction) -> bool:
    return instruction.opcode == "ldmatrix" or (instruction.opcode == "ld" and "shared" in _spaces(instruction))


def _stores_shared(instruction: Instruction) -> bool:
    return instruction.opcode == "stmatrix" or (instruction.opcode == "st" and "shared" in _spaces(instruction))


def _writes_shared_otherwise(instruction: Instruction) -> bool:
    if instruction.opcode == "st":
        return not {"global", "local", "param"}.intersection(_spaces(instruction))
    return instruction.opcode in ("cp", "atom", "red") and "shared" in _spaces(instruction)


def _nodes(body: Iterable[Statement]) -> Iterator[Instruction | Label]:
    for node in body:
        if isinstance(node, Scope):
            yield from _nodes(node.body)
        elif isinstance(node, Instruction | Label):
            yield node


def _written_registers(instruction: Instruction) -> Iterator[tuple[str, int | None]]:
    """Yield the registers that an instruction writes, with their places in a vector."""
    if instruction.opcode in ("st", "red", "bra", "bar") or not instruction.operands:
        return
    destination = instruction.operands[0]
    if isinstance(destination, Pair):
        destination = destination.first
    if isinstance(destination, Vector):
        yield from (
            (element.name, place) for place, element in enumerate(destination.elements) if isinstance(element, Register)
        )
    elif isinstance(destination, Register):
        yield destination.name, None


def _flat_operands(operands: Iterable[Operand]) -> Iterator[Operand]:
    for operand in operands:
        if isinstance(operand, Vector):
            yield from operand.elements
        elif not isinstance(operand, Memory | Element):
            yield operand


def _in_register(kind: str, *, is_matrix: bool) -> Elements:
    """Return the numbers of a type in one register; fragments of matrices hold halves in pairs."""
    elements = _PACKED.get(kind, ANYTHING)
    return elements * 2 if is_matrix and elements in (("f16",), ("bf16",)) else elements


def _float_bits(text: str) -> tuple[int, int] | None:
    """Return the bits of a literal such as ``0f7FFFFFFF``, and how many there are; None of another literal."""
    width = {"0f": 32, "0d": 64}.get(text[:2].lower())
    return None if width is None else (int(text[2:], 16), width)


def _moves_literal(instruction: Instruction) -> bool:
    return instruction.opcode == "mov" and isinstance(instruction.operands[1], Immediate)


def _first_type(instruction: Instruction) -> str:
    """Return the first type among the modifiers, which is that of the result."""
    return next((modifier for modifier in instruction.modifiers if modifier in _TYPES), "")


def _common_type(types: Iterable[Elements | None]) -> Elements | None:
    """Return the type common to all, constants aside; None if they differ or one is unknown."""
    distinct_types = set(types) - {ANYTHING}
    if not distinct_types:
        return ANYTHING
    return distinct_types.pop() if len(distinct_types) == 1 else None


def _packed_type(parts: list[Elements | None]) -> Elements | None:
    """Return the numbers of a value packed from parts; a constant part is of the type of the others."""
    distinct_types = {part for part in parts if part}
    if None in parts or len(distinct_types) > 1:
        return None
    return distinct_types.pop() * len(parts) if distinct_types else ANYTHING


def _low_elements(elements: Elements | None, size: int) -> Elements | None:
    """Return the numbers in the lowest ``size`` bits of a value, which a store writes; None if a number is cut."""
    for count in range(1, len(elements or ()) + 1):
        low_elements = (elements or ())[:count]
        if low_elements == ("int",) or sum(FLOAT_BITS.get(element, size) for element in low_elements) == size:
            return low_elements
    return None if elements else elements


def _vector_part(vector: Elements | None, place: int | None, instruction: Instruction) -> Elements | None:
    """Return the elements in one register of a vector that a value is unpacked to."""
    if place is None or not vector or not isinstance(instruction.operands[0], Vector):
        return vector
    number = len(instruction.operands[0].elements)
    size, remainder = divmod(len(vector), number)
    return None if remainder else vector[place * size : (place + 1) * size]
