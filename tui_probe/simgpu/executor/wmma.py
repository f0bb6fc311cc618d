"""``wmma``: matrix operations on fragments whose layout is the device's own affair (PTX ISA reference, 9.7.14.3).

Here, a fragment of n elements per lane holds the elements of its matrix row after row: lane l has those from
number n·l on, from the beginning again where a fragment has more room than its matrix has elements.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.ptx.tree import Immediate, Vector
from tui_probe.simgpu.executor.access import Access
from tui_probe.simgpu.executor.forms import last_type, operands_of, types_of
from tui_probe.simgpu.executor.loads import state_space
from tui_probe.simgpu.executor.matrix import (
    check_whole_warps,
    decoded,
    element_register,
    encoded,
    multiply,
    read_registers,
    write_registers,
)
from tui_probe.simgpu.executor.model import WARP_SIZE
from tui_probe.simgpu.executor.scalars import TYPES, UNSIGNED, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.group import Group
    from tui_probe.simgpu.executor.operands import Binder, Operation

_SHAPE: Final = re.compile(r"m(\d+)n(\d+)k(\d+)")


@dataclass(frozen=True, slots=True)
class _Shape:
    """Extents of a product: A is m × k, B is k × n, C and D are m × n."""

    m: int
    n: int
    k: int

    def of(self, matrix: str) -> tuple[int, int]:
        """Rows and columns of matrix ``a``, ``b``, ``c`` or ``d``."""
        return {"a": (self.m, self.k), "b": (self.k, self.n)}.get(matrix, (self.m, self.n))


def _shape_of(instruction: Instruction) -> _Shape:
    for modifier in instruction.modifiers:
        match = _SHAPE.fullmatch(modifier)
        if match:
            return _Shape(*(int(extent) for extent in match.groups()))
    raise KeyError("shape")


def _registers(operand: Operand, bind: Binder) -> tuple[Operand, ...]:
    if not isinstance(operand, Vector):
        return bind.unsupported()
    return operand.elements


def _build(instruction: Instruction, bind: Binder) -> Operation:
    kind = instruction.modifiers[0]
    bind.effects.members = bind.source(Immediate("0xffffffff"), TYPES["u32"])
    if kind == "mma":
        return _build_multiply(instruction, bind)
    return _build_load(instruction, bind) if kind == "load" else _build_store(instruction, bind)


class _Placement:
    """Where the elements of a fragment are in memory."""

    def __init__(
        self, instruction: Instruction, count: int, address: Operand, rest: list[Operand], bind: Binder
    ) -> None:
        self.kind = last_type(instruction)
        rows, columns = _shape_of(instruction).of(instruction.modifiers[1])
        each = count * max(32 // self.kind.bits, 1)
        number = (np.arange(WARP_SIZE)[:, None] * each + np.arange(each)) % (rows * columns)
        row, column = np.divmod(number, columns)
        if "col" in instruction.modifiers:
            row, column, columns = column, row, rows
        self._row, self._column = row.astype(np.uint64), column.astype(np.uint64)
        default = Immediate(str(columns))
        self._stride = bind.source(rest[0] if rest else default, TYPES["u32"])
        self.access = Access(address, state_space(instruction), self.kind.bytes, bind)

    def addresses(self, group: Group) -> Value:
        """The address of each element: shape (elements, lanes)."""
        lanes = group.lanes
        stride = lanes.spread(self._stride.read(group.registers)).astype(np.uint64)[:, None]
        offsets = (self._row[lanes.lane] * stride + self._column[lanes.lane]) * np.uint64(self.kind.bytes)
        base = lanes.spread(self.access.address(group)).astype(np.uint64)[:, None]
        result: Value = (base + offsets).T
        return result


def _build_load(instruction: Instruction, bind: Binder) -> Operation:
    """``wmma.load.a|b|c.sync.aligned.layout.shape{.space}.type {…}, [address]{, stride}``."""
    written, address, *rest = operands_of(instruction, 2, 3)
    operands = _registers(written, bind)
    placement = _Placement(instruction, len(operands), address, rest, bind)
    kind = placement.kind
    targets = [bind.target(operand, element_register(kind)) for operand in operands]
    line = bind.line

    def run(group: Group) -> None:
        check_whole_warps(group, line)
        rows = []
        for addresses in placement.addresses(group):
            element = np.empty(group.lanes.count, UNSIGNED[kind.bits])
            for part in placement.access.parts_at(group, np.ascontiguousarray(addresses)):
                chosen = slice(None) if part.positions is None else part.positions
                element[chosen] = part.view(element.dtype)[part.element]
            rows.append(element)
        elements = np.stack(rows, axis=-1).reshape(-1, WARP_SIZE, len(operands), len(rows) // len(operands))
        bits = elements.view(UNSIGNED[max(kind.bits, 32)])[..., 0]
        write_registers(targets, group, bits)

    return run


def _build_store(instruction: Instruction, bind: Binder) -> Operation:
    """``wmma.store.d.sync.aligned.layout.shape{.space}.type [address], {…}{, stride}``."""
    address, stored, *rest = operands_of(instruction, 2, 3)
    operands = _registers(stored, bind)
    placement = _Placement(instruction, len(operands), address, rest, bind)
    kind = placement.kind
    sources = [bind.source(operand, element_register(kind)) for operand in operands]
    line = bind.line

    def run(group: Group) -> None:
        check_whole_warps(group, line)
        bits = read_registers(sources, group)
        elements = bits.reshape((*bits.shape, 1)).view(UNSIGNED[kind.bits]).reshape(group.lanes.count, -1)
        for number, addresses in enumerate(placement.addresses(group)):
            for part in placement.access.parts_at(group, np.ascontiguousarray(addresses)):
                chosen = slice(None) if part.positions is None else part.positions
                part.view(elements.dtype)[part.element] = elements[chosen, number]

    return run


def _build_multiply(instruction: Instruction, bind: Binder) -> Operation:
    """``wmma.mma.sync.aligned.alayout.blayout.shape{.types}{.satfinite} d, a, b, c``."""
    types = types_of(instruction, 0)
    shape = _shape_of(instruction)
    if len(types) == 2:
        # Half precision names the types of d and c alone.
        types = [types[0], TYPES["f16"], TYPES["f16"], types[1]]
    d_kind, a_kind, b_kind, c_kind = types
    d, a, b, c = (_registers(operand, bind) for operand in operands_of(instruction, 4))
    targets = [bind.target(operand, element_register(d_kind)) for operand in d]
    inputs = [
        ([bind.source(operand, element_register(kind)) for operand in operands], kind, shape.of(name))
        for name, operands, kind in (("a", a, a_kind), ("b", b, b_kind), ("c", c, c_kind))
    ]
    saturates = "satfinite" in instruction.modifiers
    line = bind.line

    def run(group: Group) -> None:
        check_whole_warps(group, line)
        matrices = []
        for sources, kind, (rows, columns) in inputs:
            elements = decoded(read_registers(sources, group), kind)
            flat = elements.reshape(len(elements), -1)[:, : rows * columns]
            matrices.append(flat.reshape(-1, rows, columns))
        left, right, accumulator = matrices
        total = multiply(left, right, accumulator, a_kind)
        each = max(32 // d_kind.bits, 1)
        elements = total.reshape(-1, WARP_SIZE, len(targets), each)
        write_registers(targets, group, encoded(elements, d_kind, saturates))

    return run


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {"wmma": _build}
