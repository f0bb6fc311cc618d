"""Values of snippet helpers (``OUT IN1 ADDR BYTES NONFINITE OUTSIDE`` ..) for one probed instruction.

OUT, IN1, IN2, IN3 are its operands in order. An operand in memory stands for its address. ADDR is the
address in global memory, if the instruction has one, or else in the first memory operand, always as
64 bits. BYTES is what one thread moves: of a matrix that a warp moves its share, and of a ``cp.async`` that
reads less than it writes what it reads; of a copy by tensor map the box inside the tensor, whose SECTORS are those of
its rows, unless it is UNSIZED. MULTIPLY_ADDS is a thread's share of those of a matrix instruction.
LINE is where the instruction is in ``pruned.ptx``, counted from 1. NONFINITE, VALUE and KIND report what a store
writes: see ``nonfinite.py``. OUTSIDE and those computed with it look ADDR up in the table of allocations: see
``allocation_bounds.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from tui_probe.engine.helper_values.allocation_bounds import BOUNDS_HELPERS, bounds_lines, bounds_register
from tui_probe.engine.helper_values.nonfinite import NONFINITE_HELPERS, nonfinite_test, rank_test
from tui_probe.engine.helper_values.tensor_maps import BOX_FIELDS, BoxLines
from tui_probe.engine.kernel import register_type
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.probe import OUTSIDE_HELPER
from tui_probe.ptx.instruction_facts import TYPE_BITS, access_bytes, fragment_bytes, multiply_adds
from tui_probe.ptx.operands import print_operand
from tui_probe.ptx.tree import (
    Element,
    Immediate,
    Instruction,
    Memory,
    Negated,
    Operand,
    Pair,
    Register,
    Sum,
    Symbol,
    Vector,
)
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.engine.helper_values.nonfinite import NonfiniteTest
    from tui_probe.engine.kernel import Kernel, UnusedNames
    from tui_probe.probe_model.probe import Snippet
    from tui_probe.ptx.tree import Function
    from tui_probe.ptx.value_types import Elements

BOX_HELPERS: Final = frozenset({"SECTORS", "UNSIZED"}) | BOX_FIELDS.keys()
"""Properties of copies by tensor map, besides ``BYTES``."""
_OPERANDS: Final = {"OUT": 0, "IN1": 1, "IN2": 2, "IN3": 3}
_STORES: Final = frozenset({"st", "wmma"})
_SPACES: Final = ("global", "shared", "local", "const", "param")
_OFFSETS: Final = frozenset({"shared", "local"})
"""State spaces in which the name of a variable is an offset, not a generic address."""
_ADDRESSES: Final = (Memory, Element)


@dataclass(slots=True)
class HelperValue:
    """Value of a helper: an operand, its PTX type, lines that compute it, and the registers it is read from."""

    operand: str
    type: str
    lines: list[str] = field(default_factory=list)
    sources: frozenset[str] = frozenset()


class Helpers:
    """Helper values for one probed instruction of ``function``; ``types`` has the PTX types of its registers."""

    def __init__(
        self,
        instruction: Instruction,
        types: dict[str, str],
        names: UnusedNames,
        kernel: Kernel,
        function: Function,
        named_space: str = "",
    ) -> None:
        """Read the operands; ``named_space`` is the state space of the variable that the instruction names, if it has
        no state space of its own.
        """
        self._instruction = instruction
        self._types = types
        self._names = names
        self._kernel = kernel
        self._function = function
        self._named_space = named_space

    def value(self, helper: str) -> HelperValue:
        """Return the value of a helper. Raises UnsupportedKernelError if the instruction has none."""
        if helper == "LINE":
            return HelperValue(str(self._kernel.line_of(self._instruction)), "b32")
        if helper == "BYTES":
            return self._bytes()
        if helper == "MULTIPLY_ADDS":
            return self._multiply_adds()
        if helper in BOX_HELPERS:
            return self._box_value(helper)
        if helper == "WORST_IN":
            return self._worst_input()
        if helper in NONFINITE_HELPERS:
            return self._nonfinite(helper)
        if helper in BOUNDS_HELPERS:
            return self._bounds(helper)
        if helper == "ADDR":
            return self._address(self._global_operand(), helper)
        index = _OPERANDS[helper]
        operands = self._instruction.operands
        if index >= len(operands):
            raise self._absent_error(f"{helper}: the instruction has only {len(operands)} operands")
        operand = operands[index]
        if isinstance(operand, Memory | Element):
            return self._address(operand, helper)
        sources = frozenset(_operand_registers(operand))
        types = {register_type(name, self._types) for name in sources}
        if isinstance(operand, Sum) and (bits := TYPE_BITS.get(next(iter(types)), 0)):
            target = self._names.temporary(f"{helper.lower()}_b{bits}", f"b{bits}")
            line = f"add.s{bits} {target}, {operand.base}, {operand.offset};"
            return HelperValue(target, f"b{bits}", [line], sources)
        return HelperValue(print_operand(operand), types.pop() if len(types) == 1 else "", [], sources)

    def applies_to(self, snippet: Snippet) -> bool:
        """Return whether the instruction has the helpers of a snippet: NONFINITE only where numbers are stored."""
        if "WORST_IN" in snippet.helpers and self._inputs() is None:
            return False
        if snippet.helpers & BOUNDS_HELPERS and not self._has_bounds():
            return False
        return not snippet.helpers & NONFINITE_HELPERS or self._find_nonfinite() is not None

    def _has_bounds(self) -> bool:
        """Return whether an access goes through a pointer and has a known size: that to a variable is within it."""
        try:
            operand = self._global_operand()
            return isinstance(operand, Memory) and isinstance(operand.base, Register) and bool(self._bytes())
        except UnsupportedKernelError:
            return False

    def _bounds(self, helper: str) -> HelperValue:
        """Return the entry of the table of allocations at an access; OUTSIDE looks it up."""
        register, kind = bounds_register(helper, self._names)
        if helper != OUTSIDE_HELPER:
            return HelperValue(register, kind)
        address, size = self._address(self._global_operand(), "ADDR"), self._bytes()
        lines = [*address.lines, *size.lines, *bounds_lines(address.operand, size.operand, self._names)]
        return HelperValue(register, kind, lines, address.sources | size.sources)

    def _inputs(self) -> list[tuple[str, Elements]] | None:
        return self._kernel.value_types(self._function).input_elements(self._instruction)

    def _find_nonfinite(self, *, ranks: bool = False) -> NonfiniteTest | None:
        values = self._kernel.value_types(self._function)
        is_store = self._instruction.opcode in _STORES and "mma" not in self._instruction.modifiers
        numbers = values.stored_elements(self._instruction) if is_store else values.result_elements(self._instruction)
        test = rank_test if ranks else nonfinite_test
        return test(numbers, self._types_of(numbers), self._names) if numbers else None

    def _types_of(self, numbers: Sequence[tuple[str, Elements | None]]) -> dict[str, str]:
        return {name: register_type(name, self._types) for name, _ in numbers}

    def _worst_input(self) -> HelperValue:
        """Return the rank of the worst number that an instruction reads."""
        worst = self._names.temporary("worst_in", "b32")
        lines = [f"mov.b32 {worst}, 0;"]
        inputs = self._inputs() or []
        for kind in dict.fromkeys(elements[0] for _, elements in inputs):
            numbers: list[tuple[str, Elements | None]] = [pair for pair in inputs if pair[1][0] == kind]
            test = rank_test(numbers, self._types_of(numbers), self._names, has_value=False)
            if test is not None:
                lines += [*test.lines, f"max.u32 {worst}, {worst}, {test.result};"]
        return HelperValue(worst, "b32", lines, frozenset(name for name, _ in inputs))

    def _nonfinite(self, helper: str) -> HelperValue:
        nonfinite = self._find_nonfinite(ranks=helper == "WORST_OUT")
        if nonfinite is None:
            raise self._absent_error(f"{helper}: the instruction stores no numbers of a known type")
        match helper:
            case "NONFINITE":
                return HelperValue(nonfinite.result, "pred", nonfinite.lines)
            case "WORST_OUT":
                return HelperValue(nonfinite.result, "b32", nonfinite.lines)
            case "VALUE":
                return HelperValue(nonfinite.value, nonfinite.value_type)
        return HelperValue(str(nonfinite.kind), "b32")

    def written_registers(self) -> frozenset[str]:
        """Return the registers that the instruction writes."""
        destinations = self._instruction.operands[:1]
        return frozenset(
            name
            for operand in destinations
            if not isinstance(operand, _ADDRESSES)
            for name in _operand_registers(operand)
        )

    @property
    def _full_opcode(self) -> str:
        return ".".join((self._instruction.opcode, *self._instruction.modifiers))

    def _absent_error(self, helper: str) -> UnsupportedKernelError:
        """Return the error for a helper that the instruction does not have; ``helper`` names it and the reason."""
        line = self._instruction.span.line
        return UnsupportedKernelError(because("helper-absent", line=line, instruction=self._full_opcode, helper=helper))

    def _global_operand(self) -> Memory | Element:
        """Return the operand in global memory; ``cp.async.ca.shared.global [dst], [src]`` names spaces in order."""
        addresses = [operand for operand in self._instruction.operands if isinstance(operand, _ADDRESSES)]
        if not addresses:
            line = self._instruction.span.line
            raise UnsupportedKernelError(because("no-address", line=line, instruction=self._full_opcode))
        spaces = [part for modifier in self._instruction.modifiers if (part := modifier.partition("::")[0]) in _SPACES]
        index = spaces.index("global") if "global" in spaces else 0
        return addresses[min(index, len(addresses) - 1)]

    def _address(self, operand: Memory | Element, helper: str) -> HelperValue:
        """Return the address of a memory operand in a 64-bit register."""
        target = self._names.temporary(helper.lower(), "b64")
        if isinstance(operand, Element):
            lines = [f"mov.u64 {target}, {print_operand(operand)};", *self._generic_lines(target)]
            return HelperValue(target, "b64", lines, frozenset(_operand_registers(operand)))
        match operand.base:
            case Register(name=name):
                is_wide = TYPE_BITS.get(register_type(name, self._types), 64) == 64
                if is_wide and not operand.offset:
                    return HelperValue(name, "b64", [], frozenset({name}))
                widen = [] if is_wide else [f"cvt.u64.u32 {target}, {name};"]
                add = [f"add.s64 {target}, {name if is_wide else target}, {operand.offset};"] if operand.offset else []
                return HelperValue(target, "b64", widen + add, frozenset({name}))
            case Symbol(name=name):
                add = [f"add.s64 {target}, {target}, {operand.offset};"] if operand.offset else []
                return HelperValue(target, "b64", [f"mov.u64 {target}, {name};", *add, *self._generic_lines(target)])
            case None:
                return HelperValue(target, "b64", [f"mov.u64 {target}, {operand.offset};"])

    def _generic_lines(self, address: str) -> list[str]:
        """Return the lines that turn the offset of a variable in its space into a generic address."""
        is_offset = self._named_space in _OFFSETS
        return [f"cvta.{self._named_space}.u64 {address}, {address};"] if is_offset else []

    def _bytes(self) -> HelperValue:
        opcode, modifiers = self._instruction.opcode, self._instruction.modifiers
        if self.is_tensor_copy:
            return self._box_value("BYTES")
        if opcode == "cp" and "async" in modifiers:
            return self._copied_bytes()
        if opcode == "wmma" and (share := fragment_bytes(self._instruction)) is not None:
            return HelperValue(str(share), "b32")
        size = access_bytes(self._instruction)
        if size is None:
            raise self._absent_error("known BYTES")
        return HelperValue(str(size), "b32")

    @property
    def is_tensor_copy(self) -> bool:
        """Return True if the instruction copies a box by tensor map."""
        return self._instruction.opcode == "cp" and {"bulk", "tensor"} <= set(self._instruction.modifiers)

    def _box_value(self, helper: str) -> HelperValue:
        """BYTES, SECTORS and rows of a copy by tensor map, 0 if UNSIZED is 1."""
        operand = next(
            (operand for operand in self._instruction.operands if isinstance(operand, Memory) and operand.coordinates),
            None,
        )
        if not self.is_tensor_copy or operand is None:
            raise self._absent_error(f"{helper}: the instruction does not copy by tensor map")
        address = self._address(replace(operand, coordinates=()), "box")
        box = BoxLines(self._instruction, operand, address.operand, self._names, self._kernel.map_layout)
        has_address = isinstance(operand.base, Register)  # other bases may have no generic address
        if helper in BOX_FIELDS:
            is_known = box.is_sized and has_address
            field = box.rows(is_known=is_known)[helper]
            lines = [*(address.lines if is_known else ()), *field.lines]
            return HelperValue(field.register, BOX_FIELDS[helper], lines, address.sources)
        if not box.is_sized or not has_address:
            return HelperValue("1" if helper == "UNSIZED" else "0", "b32")
        value = {"BYTES": box.bytes, "SECTORS": box.sectors, "UNSIZED": box.unsized}[helper]()
        return HelperValue(value.register, "b32", [*address.lines, *value.lines], address.sources)

    def _multiply_adds(self) -> HelperValue:
        share = multiply_adds(self._instruction)
        if share is None:
            raise self._absent_error(
                "MULTIPLY_ADDS: the instruction is not a matrix product with a shape such as .m16n8k16"
            )
        return HelperValue(str(share), "b32")

    def _copied_bytes(self) -> HelperValue:
        """Return the number of bytes that a ``cp.async`` reads: its size, or less by its fourth operand."""
        match self._instruction.operands:
            case (Memory(), Memory(), Immediate(), Immediate() as read_size, *_):
                return HelperValue(read_size.text, "b32")
            case (Memory(), Memory(), Immediate() as size, Register(name=name), *_):
                return self._partial_copy_bytes(size.text, name)
            case (Memory(), Memory(), Immediate(text=text), *_):
                return HelperValue(text, "b32")
            case (Memory(), Memory(), Register(name=name), *_) | (Memory(), Register(name=name), *_):
                return HelperValue(name, "b32", [], frozenset({name}))
            case (Memory(), Immediate(text=text), *_):  # a prefetch
                return HelperValue(text, "b32")
        raise self._absent_error("known BYTES, because no operand gives the size")

    def _partial_copy_bytes(self, size: str, operand: str) -> HelperValue:
        """``cp.async`` reads nothing under a predicate, or as much as a 32-bit register says; 64 bits are a policy."""
        kind = register_type(operand, self._types)
        if kind == "pred":
            target = self._names.temporary("bytes", "b32")
            return HelperValue(target, "b32", [f"selp.b32 {target}, 0, {size}, {operand};"], frozenset({operand}))
        if "bulk" in self._instruction.modifiers or TYPE_BITS.get(kind) != 32:
            return HelperValue(size, "b32")
        return HelperValue(operand, "b32", [], frozenset({operand}))


def _operand_registers(operand: Operand | None) -> Iterator[str]:
    """Yield the registers in an operand; those of an address without its coordinates."""
    match operand:
        case Register(name=name):
            yield name
        case Vector(elements):
            for element in elements:
                yield from _operand_registers(element)
        case Pair(first, second):
            yield from _operand_registers(first)
            yield from _operand_registers(second)
        case Sum(base=inner) | Memory(base=inner) | Element(index=inner) | Negated(operand=inner):
            yield from _operand_registers(inner)
