"""Kernel parameters that the addresses of accesses come from: pointers, and tensor maps in parameters. Shared variables
that mbarriers are in.

Addresses are followed back through loads of parameters, moves and sums. A product is an offset, so its factors are not
followed. For a sum of several parameters, all are returned: a parameter that is only a number is not an address. Of a
large shared variable, which has barriers next to other data, the offset tells which barrier it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.ptx.operands import parse_integer
from tui_probe.ptx.tree import Element, Immediate, Memory, Register, Sum, Symbol, Variable, Vector, instructions_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tui_probe.ptx.tree import Function, Instruction, Operand

_SPACES = frozenset({"global", "shared"})
_MBARRIER_BYTES: Final = 8
_MAX_BARRIERS: Final = 64
"""Barriers of an array at most; a larger variable holds other data, too."""
_MAX_OFFSETS: Final = 8
"""Offsets from a register that are followed: more are of a pointer that a loop increments."""
_MANGLED: Final = re.compile(r"(\d+)([A-Za-z_]\w*)$")
"""The last name of a mangled one, behind its length."""
_LENGTH: Final = re.compile(r"L?(\d+)")
"""The length of a part of a mangled name; L if the part is of this file only."""


def address_parameters(kernel: Function) -> Callable[[Instruction], tuple[int, ...]]:
    """Return a function that gives the numbers of the parameters that an access of global memory gets its address
    from; none if they are unknown.
    """
    origins, parameters = _Origins(kernel), [parameter.name for parameter in kernel.parameters]

    def numbers(instruction: Instruction) -> tuple[int, ...]:
        names = {place.symbol for place in origins.addresses_of(_global_operand(instruction))}
        return tuple(number for number, name in enumerate(parameters) if name in names)

    return numbers


def barrier_names(kernel: Function) -> Callable[[Instruction], tuple[str, ...]]:
    """Return a function that names the mbarriers of an instruction by the shared variable that holds them, ``full[2]``
    if it holds two, ``memory+2048`` if it holds other data, too; none if it is unknown.
    """
    return _Barriers(kernel).names


class _Barriers:
    """The mbarriers of a kernel by their addresses."""

    def __init__(self, kernel: Function) -> None:
        self._kernel = kernel
        shared_variables = [item for item in kernel.body or () if isinstance(item, Variable) and item.space == "shared"]
        self._variables = {variable.name: variable for variable in shared_variables}
        self._origins = _Origins(kernel)

    def names(self, instruction: Instruction) -> tuple[str, ...]:
        """Return the names of the barriers that an instruction waits for, arrives at or lets its copy complete at.

        None of a pointer that a loop increments through a variable with other data.
        """
        places = sorted(self._origins.addresses_of(_barrier_operand(instruction)))
        names = tuple(dict.fromkeys(map(self._name, places)))
        return names if len(names) < _MAX_OFFSETS else ()

    def _name(self, place: _Address) -> str:
        variable = self._variables.get(place.symbol)
        if variable is not None and variable.size_bytes <= _MAX_BARRIERS * _MBARRIER_BYTES:
            return _barrier_name(variable)
        name = _source_name(place.symbol)
        return self._arrays[place.symbol].name(name, place.offset)

    @cached_property
    def _arrays(self) -> dict[str, BarrierArrays]:
        """The arrays of barriers in each variable."""
        arrays: dict[str, BarrierArrays] = {}
        for instruction in instructions_in(self._kernel.body or ()):
            for place in self._origins.addresses_of(_barrier_operand(instruction)):
                array = arrays.setdefault(place.symbol, BarrierArrays())
                array.indexed_offsets |= {place.offset} if place.is_indexed else set()
                if "init" in instruction.modifiers:
                    array.arrival_counts[place.offset] = instruction.operands[-1]
        return arrays


@dataclass(slots=True)
class BarrierArrays:
    """Arrays of mbarriers in a piece of shared memory. Code may compute the address of a barrier from its stage, or, in
    an unrolled loop, name each barrier.
    """

    indexed_offsets: set[int] = field(default_factory=set)
    """Offsets to which code adds an index: arrays begin there."""
    arrival_counts: dict[int, object] = field(default_factory=dict)
    """The count of arrivals that each barrier is made with: barriers in a row with the same one are an array."""

    def name(self, memory: str, offset: int, base: int = 0) -> str:
        """Return ``of+2048[2]``: the array that a barrier is in, behind address ``base``, with its length if known."""
        start = self.array_start(offset)
        count = 1
        while count < _MAX_BARRIERS and self.array_start(start + count * _MBARRIER_BYTES) == start:
            count += 1
        return f"{memory}+{start - base}" + (f"[{count}]" if count > 1 else "")

    def array_start(self, offset: int) -> int:
        """Return the offset of the first barrier of the array that a barrier is in."""
        for start in range(offset, max(offset - _MAX_BARRIERS * _MBARRIER_BYTES, -1), -_MBARRIER_BYTES):
            previous_count = self.arrival_counts.get(start - _MBARRIER_BYTES)
            if (
                start in self.indexed_offsets
                or start not in self.arrival_counts
                or previous_count is None
                or previous_count != self.arrival_counts[start]
            ):
                return start
        return offset


def _barrier_operand(instruction: Instruction) -> Memory | None:
    """Return the mbarrier of an instruction: of a copy, its last address."""
    if instruction.opcode != "mbarrier" and not any(name.startswith("mbarrier") for name in instruction.modifiers):
        return None
    addresses = [operand for operand in instruction.operands if isinstance(operand, Memory)]
    return addresses[-1] if addresses else None


def _barrier_name(variable: Variable) -> str:
    name, count = _source_name(variable.name), variable.size_bytes // _MBARRIER_BYTES
    return f"{name}[{count}]" if count > 1 else name


def _source_name(name: str) -> str:
    """``_ZZ4tileE4full`` -> ``full``, ``_ZN7cutlass4smemE`` -> ``cutlass::smem``; the name itself if it is another."""
    if (nested := _nested_names(name)) is not None:
        return "::".join(nested)
    parts = (
        match for position in range(len(name)) if (match := _MANGLED.match(name, position)) and name.startswith("_Z")
    )
    return next((match[2] for match in parts if int(match[1]) == len(match[2])), name)


def _nested_names(name: str) -> list[str] | None:
    """Return the namespaces and the name of a variable; None for a name of another form, or with templates."""
    if not name.startswith("_ZN"):
        return None
    names, position = [], len("_ZN")
    while (match := _LENGTH.match(name, position)) is not None:
        position = match.end() + int(match[1])
        names.append(name[match.end() : position])
    return names if names and name[position:] == "E" else None


class _Address(NamedTuple):
    """An address: bytes behind a symbol. ``is_indexed`` if the code adds something that is not a constant."""

    symbol: str
    offset: int = 0
    is_indexed: bool = False


class _Origins:
    """Finds the symbols that addresses are computed from."""

    def __init__(self, kernel: Function) -> None:
        self._writers: dict[str, list[Instruction]] = {}
        for instruction in instructions_in(kernel.body or ()):
            for name in _results(instruction):
                self._writers.setdefault(name, []).append(instruction)

    def addresses_of(self, operand: Memory | None) -> set[_Address]:
        """Return the addresses that an operand may have, without recursion: loops of kernels are long."""
        addresses = set[_Address]()
        pending: list[tuple[Operand, int, bool]] = [] if operand is None else [(operand, 0, False)]
        offsets: dict[str, set[tuple[int, bool]]] = {}
        while pending:
            source, addend, is_indexed = pending.pop()
            base, offset = _base_of(source)
            place = (offset + addend, is_indexed)
            if isinstance(base, Symbol):
                addresses.add(_Address(base.name, *place))
            elif base is not None:
                visited = offsets.setdefault(base.name, set())
                writers = (
                    self._writers.get(base.name, ()) if place not in visited and len(visited) < _MAX_OFFSETS else ()
                )
                visited.add(place)
                pending += [before for setter in writers for before in self._step_back(setter, *place)]
        return addresses

    def _step_back(self, writer: Instruction, addend: int, is_indexed: bool) -> Iterator[tuple[Operand, int, bool]]:
        """Yield the operands that an instruction computes an address from, with the new addend, and whether an index is
        added, too.
        """
        sign = {"add": 1, "sub": -1}.get(writer.opcode, 0)
        constants = [self._constant(operand) if sign else 0 for operand in writer.operands[1:]]
        addend += sum(sign * (constant or 0) for constant in constants[1:]) + (constants[0] or 0 if sign > 0 else 0)
        is_indexed |= writer.opcode == "mad" or (None in constants[1:] and constants[0] is None)
        yield from ((operand, addend, is_indexed) for operand in _followed(writer))

    def _constant(self, operand: Operand) -> int | None:
        """Return the value of an operand; None if it is not a constant."""
        if isinstance(operand, Immediate):
            return parse_integer(operand.text)
        writers = self._writers.get(operand.name, ()) if isinstance(operand, Register) else ()
        if len(writers) != 1 or writers[0].opcode != "mov" or len(writers[0].operands) != 2:
            return None
        value = writers[0].operands[1]
        return parse_integer(value.text) if isinstance(value, Immediate) else None


def _base_of(operand: Operand) -> tuple[Register | Symbol | None, int]:
    """Return the register or symbol that an operand is, or has its address from, and the offset from there."""
    match operand:
        case Memory() | Sum():
            return operand.base, operand.offset
        case Symbol():
            return operand, operand.offset
        case Register():
            return operand, 0
    return None, 0


def _results(instruction: Instruction) -> Iterator[str]:
    """Yield the registers that an instruction may set, to the extent that addresses go through them."""
    match instruction.operands[:1]:
        case (Register(name=name),):
            yield name
        case (Vector(elements=elements),):
            yield from (element.name for element in elements if isinstance(element, Register))


def _followed(instruction: Instruction) -> tuple[Operand, ...]:
    """Return the operands that may be the address that an instruction computes, or a part of it."""
    operands = instruction.operands
    match instruction.opcode:
        case "ld" if any(part.partition("::")[0] == "param" for part in instruction.modifiers):
            return operands[1:2]
        case "mov" | "cvta" | "add" | "selp":
            return operands[1:3]
        case "mapa":
            return operands[1:2]
        case "cvt" if instruction.modifiers == ("u32", "u64"):  # of an address in shared memory
            return operands[1:2]
        case "sub":
            return operands[1:2]
        case "mad" | "fma":
            return operands[3:4]
    return ()


def _global_operand(instruction: Instruction) -> Memory | None:
    """Return the operand in global memory, or the tensor map of a copy by one; None of other instructions."""
    addresses = [operand for operand in instruction.operands if isinstance(operand, Memory | Element)]
    spaces = [part for modifier in instruction.modifiers if (part := modifier.partition("::")[0]) in _SPACES]
    if "global" not in spaces or not addresses:
        return None
    tensor_address = next(
        (address for address in addresses if isinstance(address, Memory) and address.coordinates), None
    )
    operand = tensor_address or addresses[min(spaces.index("global"), len(addresses) - 1)]
    return operand if isinstance(operand, Memory) else None
