"""Matrix operations of warps on fragments in a layout of the device's own: ``wmma``.

PTX ISA reference, section 9.7.14.3. Here, a fragment of n elements per lane holds the elements of its matrix row after
row: lane l has those from number n·l on, from the beginning again where a fragment has more room than its matrix has
elements.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.ptx.tree import Immediate, Operand, Vector
from tui_probe.simgpu.executor.addressing import Access, state_space
from tui_probe.simgpu.executor.checks.accesses import LOAD, STORE, AccessKind
from tui_probe.simgpu.executor.matrix import (
    check_whole_warps,
    decode_elements,
    element_register,
    elements_per_register,
    encode_elements,
    multiply,
    read_registers,
    set_all_members,
    write_registers,
)
from tui_probe.simgpu.executor.model import WARP_SIZE
from tui_probe.simgpu.executor.scalars import TYPES, UNSIGNED, Value, last_type, operands_of, types_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.operations import Operation
    from tui_probe.simgpu.executor.threads import ThreadGroup

_SHAPE: Final = re.compile(r"m(\d+)n(\d+)k(\d+)")


@dataclass(frozen=True, slots=True)
class _ProductShape:
    """Extents of a product: A is m × k, B is k × n, C and D are m × n."""

    m: int
    n: int
    k: int

    def matrix_shape(self, matrix: str) -> tuple[int, int]:
        """Rows and columns of matrix ``a``, ``b``, ``c`` or ``d``."""
        return {"a": (self.m, self.k), "b": (self.k, self.n)}.get(matrix, (self.m, self.n))


def _shape_of(instruction: Instruction, bind: Binder) -> _ProductShape:
    for modifier in instruction.modifiers:
        match = _SHAPE.fullmatch(modifier)
        if match:
            return _ProductShape(*(int(extent) for extent in match.groups()))
    return bind.unsupported()


def _register_operands(operand: Operand, bind: Binder) -> tuple[Operand, ...]:
    if not isinstance(operand, Vector):
        return bind.unsupported()
    return operand.elements


def _build_wmma(instruction: Instruction, bind: Binder) -> Operation:
    set_all_members(bind)
    match instruction.modifiers[0]:
        case "mma":
            return _build_multiply(instruction, bind)
        case "load":
            return _build_load(instruction, bind)
    return _build_store(instruction, bind)


class _FragmentPlacement:
    """Memory positions of the elements of a fragment."""

    def __init__(
        self,
        instruction: Instruction,
        count: int,
        address: Operand,
        stride_operands: list[Operand],
        bind: Binder,
        access: AccessKind = LOAD,
    ) -> None:
        self.kind = last_type(instruction)
        rows, columns = _shape_of(instruction, bind).matrix_shape(instruction.modifiers[1])
        elements = count * elements_per_register(self.kind)
        number = (np.arange(WARP_SIZE)[:, None] * elements + np.arange(elements)) % (rows * columns)
        row, column = np.divmod(number, columns)
        if "col" in instruction.modifiers:
            row, column, columns = column, row, rows
        self._row, self._column = row.astype(np.uint64), column.astype(np.uint64)
        default = Immediate(str(columns))
        self._stride = bind.source(stride_operands[0] if stride_operands else default, TYPES["u32"])
        self.access = Access(address, state_space(instruction), self.kind.bytes, bind, access)

    def addresses(self, group: ThreadGroup) -> Value:
        """The address of each element: shape (elements, lanes)."""
        lanes = group.lanes
        stride = lanes.spread(self._stride.read(group.registers)).astype(np.uint64)[:, None]
        offsets = (self._row[lanes.lane] * stride + self._column[lanes.lane]) * np.uint64(self.kind.bytes)
        base = lanes.spread(self.access.address(group)).astype(np.uint64)[:, None]
        result: Value = (base + offsets).T
        return result


def _build_load(instruction: Instruction, bind: Binder) -> Operation:
    """``wmma.load.a|b|c.sync.aligned.layout.shape{.space}.type {…}, [address]{, stride}``."""
    destination, address, *stride_operands = operands_of(instruction, 2, 3)
    operands = _register_operands(destination, bind)
    placement = _FragmentPlacement(instruction, len(operands), address, stride_operands, bind)
    kind = placement.kind
    targets = [bind.target(operand, element_register(kind)) for operand in operands]
    line = bind.line

    def run(group: ThreadGroup) -> None:
        check_whole_warps(group, line)
        rows = []
        for addresses in placement.addresses(group):
            element = np.empty(group.lanes.count, UNSIGNED[kind.bits])
            for part in placement.access.parts_at(group, np.ascontiguousarray(addresses)):
                placement.access.check(group, part)
                positions = slice(None) if part.positions is None else part.positions
                element[positions] = part.view(element.dtype)[part.element]
            rows.append(element)
        elements = np.stack(rows, axis=-1).reshape(-1, WARP_SIZE, len(operands), len(rows) // len(operands))
        bits = elements.view(UNSIGNED[max(kind.bits, 32)])[..., 0]
        write_registers(targets, group, bits)

    return run


def _build_store(instruction: Instruction, bind: Binder) -> Operation:
    """``wmma.store.d.sync.aligned.layout.shape{.space}.type [address], {…}{, stride}``."""
    address, values, *stride_operands = operands_of(instruction, 2, 3)
    operands = _register_operands(values, bind)
    placement = _FragmentPlacement(instruction, len(operands), address, stride_operands, bind, STORE)
    kind = placement.kind
    sources = [bind.source(operand, element_register(kind)) for operand in operands]
    line = bind.line

    def run(group: ThreadGroup) -> None:
        check_whole_warps(group, line)
        bits = read_registers(sources, group)
        elements = bits.reshape((*bits.shape, 1)).view(UNSIGNED[kind.bits]).reshape(group.lanes.count, -1)
        for number, addresses in enumerate(placement.addresses(group)):
            for part in placement.access.parts_at(group, np.ascontiguousarray(addresses)):
                placement.access.check(group, part, elements[:, number])
                positions = slice(None) if part.positions is None else part.positions
                part.view(elements.dtype)[part.element] = elements[positions, number]

    return run


def _build_multiply(instruction: Instruction, bind: Binder) -> Operation:
    """``wmma.mma.sync.aligned.alayout.blayout.shape{.types}{.satfinite} d, a, b, c``."""
    types = types_of(instruction, 0)
    shape = _shape_of(instruction, bind)
    if len(types) == 2:
        # Half precision names the types of d and c only.
        types = [types[0], TYPES["f16"], TYPES["f16"], types[1]]
    d_kind, a_kind, b_kind, c_kind = types
    d, a, b, c = (_register_operands(operand, bind) for operand in operands_of(instruction, 4))
    targets = [bind.target(operand, element_register(d_kind)) for operand in d]
    inputs = [
        ([bind.source(operand, element_register(kind)) for operand in operands], kind, shape.matrix_shape(name))
        for name, operands, kind in (("a", a, a_kind), ("b", b, b_kind), ("c", c, c_kind))
    ]
    saturates = "satfinite" in instruction.modifiers
    line = bind.line

    def run(group: ThreadGroup) -> None:
        check_whole_warps(group, line)
        matrices = []
        for sources, kind, (rows, columns) in inputs:
            elements = decode_elements(read_registers(sources, group), kind)
            warp_elements = elements.reshape(len(elements), -1)[:, : rows * columns]
            matrices.append(warp_elements.reshape(-1, rows, columns))
        a_matrix, b_matrix, accumulator = matrices
        total = multiply(a_matrix, b_matrix, accumulator, a_kind)
        elements = total.reshape(-1, WARP_SIZE, len(targets), elements_per_register(d_kind))
        write_registers(targets, group, encode_elements(elements, d_kind, saturates))

    return run


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {"wmma": _build_wmma}
