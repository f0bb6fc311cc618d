"""Kernel parameters that the addresses of accesses come from: pointers, and tensor maps in parameters.

Addresses are followed back through loads of parameters, moves and sums. A product is an offset, so its factors are not
followed. For a sum of several parameters, all are returned: a parameter that is only a number is not an address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.ptx.tree import Element, Memory, Register, Symbol, Vector, instructions_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tui_probe.ptx.tree import Function, Instruction, Operand

_SPACES = frozenset({"global", "shared"})


def address_parameters(kernel: Function) -> Callable[[Instruction], tuple[int, ...]]:
    """Return a function that gives the numbers of the parameters that an access of global memory gets its address
    from; none if they are unknown.
    """
    origins = _Origins(kernel)
    return lambda instruction: tuple(sorted(origins.of_access(instruction)))


class _Origins:
    def __init__(self, kernel: Function) -> None:
        self._numbers = {parameter.name: number for number, parameter in enumerate(kernel.parameters)}
        self._set_by: dict[str, list[Instruction]] = {}
        for instruction in instructions_in(kernel.body or ()):
            for name in _results(instruction):
                self._set_by.setdefault(name, []).append(instruction)

    def of_access(self, instruction: Instruction) -> set[int]:
        operand = _global_operand(instruction)
        match operand.base if operand else None:
            case Register(name=name):
                return self._of_register(name)
            case Symbol(name=name) if name in self._numbers:
                return {self._numbers[name]}
        return set()

    def _of_register(self, name: str) -> set[int]:
        """The parameters whose values are in a register, without recursion: loops of kernels are long."""
        parameters, seen, waiting = set[int](), {name}, [name]
        while waiting:
            for instruction in self._set_by.get(waiting.pop(), ()):
                for operand in _followed(instruction):
                    match operand:
                        case Symbol(name=symbol) | Memory(base=Symbol(name=symbol)) if symbol in self._numbers:
                            parameters.add(self._numbers[symbol])
                        case Register(name=register) if register not in seen:
                            seen.add(register)
                            waiting.append(register)
        return parameters


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
