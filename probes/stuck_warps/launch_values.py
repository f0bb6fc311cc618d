"""Values of registers that are the same in all threads of a launch, followed through the PTX of one function."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.ptx.operands import parse_integer
from tui_probe.ptx.tree import Immediate, Memory, Register, Sum, Symbol, instructions_in
from tui_probe.ptx.waiting import operand_registers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tui_probe.ptx.tree import Function, Instruction, Operand
    from tui_probe.trace.launch_shape import Dim3

_COPIES: Final = frozenset({"mov", "cvt", "cvta"})
_OPERATIONS: Final[Mapping[str, Callable[[int, int], int]]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "shl": operator.lshift, "shr": operator.rshift,
    "and": operator.and_, "or": operator.or_, "min": min, "max": max,
}  # fmt: skip
_MAX_DEPTH: Final = 16
"""Instructions that a value is followed back through: the search recurses, and a chain may have any length."""
_MAX_SHIFT: Final = 31
"""Bits: larger shifts in damaged code would make numbers that do not fit into memory."""


class Value(NamedTuple):
    """A number, or an address: that of the variable ``symbol`` and ``number`` bytes."""

    number: int
    symbol: str = ""


class Pointer(NamedTuple):
    """An address in the memory that a parameter or variable ``base`` leads to; ``offset`` is None if not known."""

    base: str
    offset: int | None

    def add_offset(self, distance: int | None) -> Pointer:
        """Return the address ``distance`` bytes behind; None: an unknown number."""
        return Pointer(self.base, None if distance is None or self.offset is None else self.offset + distance)


class LaunchValues:
    """Values of registers of a function: numbers, sizes of the launch, addresses of variables, and results of these."""

    def __init__(self, function: Function, grid: Dim3 | None, block: Dim3 | None) -> None:
        self._is_kernel = function.kind == "entry"
        shapes = {"%ntid": block, "%nctaid": grid}
        self._sizes = {
            (name, axis): size for name, shape in shapes.items() for axis, size in zip("xyz", shape or (), strict=False)
        }
        self._values: dict[str, Value | None] = {}
        self._pointers: dict[str, Pointer | None] = {}
        self._writers: dict[str, list[Instruction]] = {}
        for instruction in instructions_in(function.body or ()):
            for name in operand_registers(_result_operands(instruction)):
                self._writers.setdefault(name, []).append(instruction)

    def value_of(self, operand: Operand, depth: int = 0) -> Value | None:
        """Return the value of an operand; None if it is unknown, or not always the same."""
        match operand:
            case Immediate(text="WARP_SZ"):
                return Value(32)
            case Immediate(text=text):
                number = parse_integer(text)
                return None if number is None else Value(number)
            case Symbol(name=name, offset=offset):
                return Value(offset, name)
            case Sum(base=base, offset=offset) | Memory(base=base, offset=offset, coordinates=()) if base is not None:
                base_value = self.value_of(base, depth)
                return None if base_value is None else Value(base_value.number + offset, base_value.symbol)
            case Register(name=name, selector=selector) if (name, selector) in self._sizes:
                return Value(self._sizes[name, selector])
            case Register(name=name, selector=""):
                return self._in_register(name, depth + 1)
        return None

    def number(self, operand: Operand) -> int | None:
        """Return the value of an operand if it is a number."""
        value = self.value_of(operand)
        return value.number if value is not None and not value.symbol else None

    def pointer(self, operand: Operand, depth: int = 0) -> Pointer | None:
        """Return which memory an address is in; None if that is not known."""
        match operand:
            case Symbol(name=name, offset=offset):
                return Pointer(name, offset)
            case Sum(base=base, offset=offset) | Memory(base=base, offset=offset, coordinates=()) if base is not None:
                base_pointer = self.pointer(base, depth)
                return None if base_pointer is None else base_pointer.add_offset(offset)
            case Register(name=name, selector="") if len(self._writers.get(name, ())) == 1 and depth < _MAX_DEPTH:
                if name not in self._pointers:
                    self._pointers[name] = self._pointer_computed(self._writers[name][0], depth + 1)
                return self._pointers[name]
        return None

    def _pointer_computed(self, writer: Instruction, depth: int) -> Pointer | None:
        if writer.predicate is not None:
            return None
        if writer.opcode == "ld" and "param" in writer.modifiers:
            pointer = self.pointer(writer.operands[1], depth) if self._is_kernel else None
            return None if pointer is None else Pointer(f"{pointer.base}+{pointer.offset}", 0)
        inputs = writer.operands[3:] if writer.opcode == "mad" else writer.operands[1:]
        if writer.opcode not in (*_COPIES, "add", "mad"):
            return None
        pointers = [
            (number, pointer)
            for number, operand in enumerate(inputs)
            if (pointer := self.pointer(operand, depth)) is not None
        ]
        if len(pointers) != 1:
            return None
        ((number, pointer),) = pointers
        if writer.opcode == "mad":
            return pointer.add_offset(None)  # by a product, which is not followed
        offsets = [self.number(addend) for index, addend in enumerate(inputs) if index != number]
        return pointer.add_offset(offsets[0] if offsets else 0)

    def _in_register(self, name: str, depth: int) -> Value | None:
        if name not in self._values:
            self._values[name] = None  # ends the recursion at a register that is computed from itself
            values = {self._computed(writer, depth) for writer in self._writers.get(name, ())}
            self._values[name] = values.pop() if len(values) == 1 else None
        return self._values[name]

    def _computed(self, writer: Instruction, depth: int) -> Value | None:
        if writer.predicate is not None or depth > _MAX_DEPTH or not isinstance(writer.operands[0], Register):
            return None
        values = [self.value_of(operand, depth) for operand in writer.operands[1:]]
        is_low = "hi" not in writer.modifiers
        match writer.opcode, values:
            case opcode, [Value() as copied] if opcode in _COPIES:
                return copied
            case "mad", [Value(first, ""), Value(second, ""), Value(third, symbol)] if is_low:
                return Value(first * second + third, symbol)
            case "add", [Value(first, symbol), Value(second, "")] | [Value(second, ""), Value(first, symbol)]:
                return Value(first + second, symbol)
            case opcode, [Value(first, ""), Value(second, "")] if opcode in _OPERATIONS and is_low:
                is_shift = opcode in ("shl", "shr")
                return None if is_shift and not 0 <= second <= _MAX_SHIFT else Value(_OPERATIONS[opcode](first, second))
        return None


def _result_operands(instruction: Instruction) -> Sequence[Operand]:
    """Return the operand that an instruction writes; none if it writes memory."""
    return [operand for operand in instruction.operands[:1] if not isinstance(operand, Memory)]
