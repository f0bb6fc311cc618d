"""Kernel parameters that the addresses of accesses come from: pointers, and tensor maps in parameters. Of waits at
mbarriers, the shared variables.

Addresses are followed back through loads of parameters, moves and sums. A product is an offset, so its factors are not
followed. For a sum of several parameters, all are returned: a parameter that is only a number is not an address.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tui_probe.ptx.tree import Element, Memory, Register, Symbol, Variable, Vector, instructions_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tui_probe.ptx.tree import Function, Instruction, Operand

_SPACES = frozenset({"global", "shared"})
_MBARRIER_BYTES: Final = 8
_MANGLED: Final = re.compile(r"(\d+)([A-Za-z_]\w*)$")
"""The last name of a mangled one, behind its length."""


def address_parameters(kernel: Function) -> Callable[[Instruction], tuple[int, ...]]:
    """Return a function that gives the numbers of the parameters that an access of global memory gets its address
    from; none if they are unknown.
    """
    origins = _Origins(kernel, {parameter.name: number for number, parameter in enumerate(kernel.parameters)})
    return lambda instruction: tuple(sorted(origins.of_operand(_global_operand(instruction))))


def barrier_names(kernel: Function) -> Callable[[Instruction], tuple[str, ...]]:
    """Return a function that names the mbarriers of an instruction by the shared variable that holds them, ``full[2]``
    if it holds two; none if it is unknown.
    """
    variables = [own for own in kernel.body or () if isinstance(own, Variable) and own.space == "shared"]
    origins = _Origins(kernel, {variable.name: number for number, variable in enumerate(variables)})

    def named(instruction: Instruction) -> tuple[str, ...]:
        address = next((own for own in instruction.operands if isinstance(own, Memory)), None)
        return tuple(_barrier_name(variables[number]) for number in sorted(origins.of_operand(address)))

    return named


def _barrier_name(variable: Variable) -> str:
    name = variable.name
    parts = (match for at in range(len(name)) if (match := _MANGLED.match(name, at)) and name.startswith("_Z"))
    name = next((match[2] for match in parts if int(match[1]) == len(match[2])), name)
    count = variable.size_bytes // _MBARRIER_BYTES
    return f"{name}[{count}]" if count > 1 else name


class _Origins:
    """Finds the symbols that addresses are computed from: those that have one of the ``numbers``."""

    def __init__(self, kernel: Function, numbers: Mapping[str, int]) -> None:
        self._numbers = numbers
        self._set_by: dict[str, list[Instruction]] = {}
        for instruction in instructions_in(kernel.body or ()):
            for name in _results(instruction):
                self._set_by.setdefault(name, []).append(instruction)

    def of_operand(self, operand: Memory | None) -> set[int]:
        """Return the numbers of the symbols that an address may come from."""
        match operand.base if operand else None:
            case Register(name=name):
                return self._of_register(name)
            case Symbol(name=name) if name in self._numbers:
                return {self._numbers[name]}
        return set()

    def _of_register(self, name: str) -> set[int]:
        """The symbols whose values are in a register, without recursion: loops of kernels are long."""
        numbers, seen, waiting = set[int](), {name}, [name]
        while waiting:
            for instruction in self._set_by.get(waiting.pop(), ()):
                for operand in _followed(instruction):
                    match operand:
                        case Symbol(name=symbol) | Memory(base=Symbol(name=symbol)) if symbol in self._numbers:
                            numbers.add(self._numbers[symbol])
                        case Register(name=register) if register not in seen:
                            seen.add(register)
                            waiting.append(register)
        return numbers


def _results(instruction: Instruction) -> Iterator[str]:
    """The registers that an instruction may set, to the extent that addresses go through them."""
    match instruction.operands[:1]:
        case (Register(name=name),):
            yield name
        case (Vector(elements=elements),):
            yield from (element.name for element in elements if isinstance(element, Register))


def _followed(instruction: Instruction) -> tuple[Operand, ...]:
    """The operands that may be the address that an instruction computes, or a part of it."""
    operands = instruction.operands
    match instruction.opcode:
        case "ld" if any(part.partition("::")[0] == "param" for part in instruction.modifiers):
            return operands[1:2]
        case "mov" | "cvta" | "add" | "selp":
            return operands[1:3]
        case "cvt" if instruction.modifiers == ("u32", "u64"):  # of an address in shared memory
            return operands[1:2]
        case "sub":
            return operands[1:2]
        case "mad" | "fma":
            return operands[3:4]
    return ()


def _global_operand(instruction: Instruction) -> Memory | None:
    """The operand in global memory, or the tensor map of a copy by one; None of other instructions."""
    addresses = [own for own in instruction.operands if isinstance(own, Memory | Element)]
    spaces = [part for own in instruction.modifiers if (part := own.partition("::")[0]) in _SPACES]
    if "global" not in spaces or not addresses:
        return None
    by_map = next((own for own in addresses if isinstance(own, Memory) and own.coordinates), None)
    operand = by_map or addresses[min(spaces.index("global"), len(addresses) - 1)]
    return operand if isinstance(operand, Memory) else None
