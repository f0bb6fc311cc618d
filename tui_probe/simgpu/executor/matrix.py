"""Matrix operations of warps: ``mma``, ``wmma``, ``ldmatrix``, ``stmatrix``, ``movmatrix``.

PTX ISA reference, sections 9.7.14.3 to 9.7.14.5.

Products are summed in double precision, where those of half precision, bfloat16 and TF32 are exact; the sum
with the accumulator is rounded once. A device rounds, or cuts, in between, in ways that are not documented.
All lanes of a warp take part.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.errors import SimulationError
from tui_probe.ptx.tree import Immediate, Operand, Vector
from tui_probe.simgpu.executor.addressing import Access, state_space
from tui_probe.simgpu.executor.checks.accesses import LOAD, STORE, AccessKind
from tui_probe.simgpu.executor.convert import FORMATS
from tui_probe.simgpu.executor.model import WARP_SIZE
from tui_probe.simgpu.executor.rounding import fma64, from_bfloat16
from tui_probe.simgpu.executor.scalars import (
    B128,
    F32,
    F64,
    S64,
    TYPES,
    U16,
    U32,
    UNSIGNED,
    ScalarType,
    Value,
    last_type,
    operands_of,
    types_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tui_probe.ptx.tree import Instruction
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.operations import Operation, ResultOperand, SourceOperand
    from tui_probe.simgpu.executor.threads import ThreadGroup

_U32: Final = TYPES["u32"]
_LANE: Final = np.arange(WARP_SIZE)
_ROW: Final = _LANE // 4
_QUAD: Final = _LANE % 4
"""Lanes form eight groups of four: the group of each lane, which has a row, and its place there."""
_SHAPES: Final = frozenset(
    {"m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32", "m8n8k4"},
)


def check_whole_warps(group: ThreadGroup, line: int) -> None:
    """Raise SimulationError if a lane of a warp is missing."""
    lanes = group.lanes
    if (lanes.active_bits[lanes.warps] != 0xFFFFFFFF).any():
        where = group.batch.describe(lanes, 0)
        raise SimulationError(f"matrix operation at line {line} needs all lanes of a warp, {where}")


def element_register(kind: ScalarType) -> ScalarType:
    """The type of the registers that hold elements of ``kind``: 32 bits, or one double."""
    return TYPES["b64"] if kind.bits == 64 else _U32


def elements_per_register(kind: ScalarType) -> int:
    """Return the elements of ``kind`` that a register of 32 bits holds; 1 of doubles, which have 64."""
    return max(32 // kind.bits, 1)


def decoded(bits: Value, kind: ScalarType) -> Value:
    """Registers (…, 32 or 64 bits) as their elements (…, elements in a register), as int64 or float64."""
    parts: Value = bits.reshape((*bits.shape, 1)).view(UNSIGNED[kind.bits])
    if kind.name == "tf32":
        # The device ignores the low bits of a single.
        return (parts & np.uint32(0xFFFFE000)).view(F32).astype(F64)
    if kind.kind == "bf":
        return from_bfloat16(parts).astype(F64)
    if kind.kind == "f8":
        return FORMATS[kind.name].decoded(parts).astype(F64)
    return parts.view(kind.dtype).astype(F64 if kind.kind == "f" else S64)


def encoded(elements: Value, kind: ScalarType, saturates: bool) -> Value:
    """The reverse of ``decoded`` for results: float16, float32, float64 or int32."""
    if kind.kind == "s":
        limits = np.iinfo(kind.dtype)
        elements = np.clip(elements, limits.min, limits.max) if saturates else elements
    result = np.ascontiguousarray(elements.astype(kind.dtype))
    return result.view(UNSIGNED[max(kind.bits, 32)])[..., 0]


def read_registers(sources: Sequence[SourceOperand], group: ThreadGroup) -> Value:
    """Registers as an array of shape (warps, 32, registers)."""
    values = [group.lanes.spread(source.read(group.registers)) for source in sources]
    return np.stack(values, axis=-1).reshape(-1, WARP_SIZE, len(values))


def write_registers(targets: Sequence[ResultOperand], group: ThreadGroup, values: Value) -> None:
    """The reverse of ``read_registers``."""
    for number, target in enumerate(targets):
        target.write(group.registers, np.ascontiguousarray(values[:, :, number]).reshape(-1))


def multiply(a: Value, b: Value, c: Value, kind: ScalarType) -> Value:
    """a · b + c for stacks of matrices of float64 or int64. ``kind`` is that of the elements of a and b."""
    if kind.bits != 64:
        total: Value = a @ b + c
        return total
    # Doubles: one fused multiply-add after the other.
    for k in range(a.shape[-1]):
        c = fma64(*np.broadcast_arrays(a[..., :, k : k + 1], b[..., k : k + 1, :], c))
    return c


class Fragment:
    """Positions of matrix elements in a warp: rows and columns of shape (32, registers, elements)."""

    def __init__(self, rows: NDArray[Any], columns: NDArray[Any]) -> None:
        self.rows, self.columns = np.broadcast_arrays(rows, columns)
        self.shape = (int(self.rows.max()) + 1, int(self.columns.max()) + 1)

    def matrix(self, elements: Value) -> Value:
        """Matrices (warps, rows, columns) of elements (warps, 32, registers, elements)."""
        result = np.zeros((len(elements), *self.shape), elements.dtype)
        result[:, self.rows, self.columns] = elements
        return result

    def elements(self, matrix: Value) -> Value:
        """The reverse of ``matrix``."""
        result: Value = matrix[:, self.rows, self.columns]
        return result


def _fragments(registers: int, kind: ScalarType) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Lane numbers within groups, register numbers and places in a register, to compute with."""
    per_register = elements_per_register(kind)
    shape = (WARP_SIZE, registers, per_register)
    register, place = np.arange(registers)[None, :, None], np.arange(per_register)[None, None, :]
    return np.broadcast_to(_ROW[:, None, None], shape), register, place


def left_of(registers: int, kind: ScalarType) -> Fragment:
    """Matrix A of sixteen rows: registers go down eight rows first, then right."""
    row, register, place = _fragments(registers, kind)
    per_register = place.size
    step = register // 2 if registers > 1 else register
    down = register % 2 if registers > 1 else 0 * register
    return Fragment(row + 8 * down, _QUAD[:, None, None] * per_register + place + 4 * per_register * step)


def _right(registers: int, kind: ScalarType) -> Fragment:
    """Matrix B."""
    row, register, place = _fragments(registers, kind)
    per_register = place.size
    return Fragment(_QUAD[:, None, None] * per_register + place + 4 * per_register * register, row)


def accumulator_of(registers: int, kind: ScalarType) -> Fragment:
    """Matrices C and D of sixteen rows: pairs of neighbours, in one register or two; down, then right."""
    row, register, place = _fragments(registers, kind)
    pair, place = (register, place) if kind.bits == 16 else (register // 2, register % 2 + place)
    return Fragment(row + 8 * (pair % 2), 8 * (pair // 2) + 2 * _QUAD[:, None, None] + place)


def _elements(operand: Operand) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _build_multiply(instruction: Instruction, bind: Binder) -> Operation:
    """``mma.sync.aligned.shape.row.col{.satfinite}.dtype.atype.btype.ctype d, a, b, c``."""
    shape = next((modifier for modifier in instruction.modifiers if modifier in _SHAPES), "")
    d_kind, a_kind, b_kind, c_kind = types_of(instruction, 4)
    if not shape or (shape == "m8n8k4" and a_kind.bits != 64) or "sp" in instruction.modifiers:
        bind.unsupported()
    d, a, b, c = (_elements(operand) for operand in operands_of(instruction, 4))
    targets = [bind.target(operand, element_register(d_kind)) for operand in d]
    sources = [
        [bind.source(operand, element_register(kind)) for operand in operands]
        for operands, kind in ((a, a_kind), (b, b_kind), (c, c_kind))
    ]
    left, right = left_of(len(a), a_kind), _right(len(b), b_kind)
    before, after = accumulator_of(len(c), c_kind), accumulator_of(len(d), d_kind)
    saturates = "satfinite" in instruction.modifiers
    bind.effects.members = bind.source(Immediate("0xffffffff"), _U32)
    line = bind.line

    def run(group: ThreadGroup) -> None:
        check_whole_warps(group, line)
        a_bits, b_bits, c_bits = (read_registers(operand, group) for operand in sources)
        total = multiply(
            left.matrix(decoded(a_bits, a_kind)),
            right.matrix(decoded(b_bits, b_kind)),
            before.matrix(decoded(c_bits, c_kind)),
            a_kind,
        )
        write_registers(targets, group, encoded(after.elements(total), d_kind, saturates))

    return run


def _build_load(instruction: Instruction, bind: Binder) -> Operation:
    """``ldmatrix.sync.aligned.m8n8.x1|x2|x4{.trans}.shared.b16 {…}, [row address]``.

    Lane 8·j + i gives the address of row i of matrix j.
    """
    if "m8n8" not in instruction.modifiers or "b16" not in instruction.modifiers:
        bind.unsupported()
    written, address = operands_of(instruction, 2)
    targets = [bind.target(operand, _U32) for operand in _elements(written)]
    count = len(targets)
    access = Access(address, state_space(instruction), 16, bind)
    reads = tuple(bind.effects.reads)
    transposed = "trans" in instruction.modifiers
    bind.effects.members = bind.source(Immediate("0xffffffff"), _U32)
    line = bind.line

    def run(group: ThreadGroup) -> None:
        check_whole_warps(group, line)
        givers = group.select(np.flatnonzero(group.lanes.lane < 8 * count), group.block, reads)
        rows = np.empty(givers.lanes.count, B128)
        for part in access.parts(givers):
            access.check(givers, part)
            chosen = slice(None) if part.positions is None else part.positions
            rows[chosen] = part.view(B128)[part.element]
        matrices = rows.view(U16).reshape(-1, count, 8, 8)
        write_registers(targets, group, _distributed(matrices, transposed))

    return run


def _build_store(instruction: Instruction, bind: Binder) -> Operation:
    """``stmatrix.sync.aligned.m8n8.x1|x2|x4{.trans}{.shared}.b16 [row address], {…}``: the reverse of ``ldmatrix``."""
    if "m8n8" not in instruction.modifiers or "b16" not in instruction.modifiers:
        bind.unsupported()
    address, stored = operands_of(instruction, 2)
    sources = [bind.source(operand, _U32) for operand in _elements(stored)]
    access = Access(address, "shared", 16, bind, STORE)
    reads = tuple(bind.effects.reads)
    transposed = "trans" in instruction.modifiers
    bind.effects.members = bind.source(Immediate("0xffffffff"), _U32)
    line = bind.line

    def run(group: ThreadGroup) -> None:
        check_whole_warps(group, line)
        rows = _collected(read_registers(sources, group), transposed)
        takers = group.select(np.flatnonzero(group.lanes.lane < 8 * len(sources)), group.block, reads)
        access.scatter(takers, access.address(takers), rows)

    return run


def _collected(registers: Value, transposed: bool) -> Value:
    """Registers (warps, 32, matrices) to the rows of their matrices, 16 bytes each, in order."""
    packed = np.ascontiguousarray(registers.swapaxes(-1, -2))
    matrices = packed.view(U16).reshape(*packed.shape[:2], 8, 8)
    if transposed:
        matrices = matrices.swapaxes(-1, -2)
    return np.ascontiguousarray(matrices).reshape(-1, 8).view(B128)[:, 0]


def _distributed(matrices: Value, transposed: bool) -> Value:
    """Matrices of 16-bit elements (warps, matrices, 8, 8) to registers (warps, 32, matrices)."""
    if transposed:
        matrices = matrices.swapaxes(-1, -2)
    # Each lane takes two neighbours of a row, lane after lane.
    packed = np.ascontiguousarray(matrices).view(U32).reshape(len(matrices), matrices.shape[1], WARP_SIZE)
    return packed.swapaxes(-1, -2)


def _build_move(instruction: Instruction, bind: Binder) -> Operation:
    """``movmatrix.sync.aligned.m8n8.trans.b16 d, a``: the transpose of a matrix held by a warp."""
    written, source = operands_of(instruction, 2)
    target, value = bind.target(written, _U32), bind.source(source, _U32)
    bind.effects.members = bind.source(Immediate("0xffffffff"), _U32)
    line = bind.line

    def run(group: ThreadGroup) -> None:
        check_whole_warps(group, line)
        values = np.ascontiguousarray(group.lanes.spread(value.read(group.registers)))
        matrices = values.view(U16).reshape(-1, 1, 8, 8)
        write_registers([target], group, _distributed(matrices, transposed=True))

    return run


# ``wmma``: matrix operations on fragments whose layout is the device's own affair (PTX ISA reference, 9.7.14.3).
#
# Here, a fragment of n elements per lane holds the elements of its matrix row after row: lane l has those from number
# n·l on, from the beginning again where a fragment has more room than its matrix has elements.

_WMMA_SHAPE: Final = re.compile(r"m(\d+)n(\d+)k(\d+)")


@dataclass(frozen=True, slots=True)
class _WmmaShape:
    """Extents of a product: A is m × k, B is k × n, C and D are m × n."""

    m: int
    n: int
    k: int

    def of(self, matrix: str) -> tuple[int, int]:
        """Rows and columns of matrix ``a``, ``b``, ``c`` or ``d``."""
        return {"a": (self.m, self.k), "b": (self.k, self.n)}.get(matrix, (self.m, self.n))


def _shape_of(instruction: Instruction) -> _WmmaShape:
    for modifier in instruction.modifiers:
        match = _WMMA_SHAPE.fullmatch(modifier)
        if match:
            return _WmmaShape(*(int(extent) for extent in match.groups()))
    raise KeyError("shape")


def _registers(operand: Operand, bind: Binder) -> tuple[Operand, ...]:
    if not isinstance(operand, Vector):
        return bind.unsupported()
    return operand.elements


def _build_wmma(instruction: Instruction, bind: Binder) -> Operation:
    bind.effects.members = bind.source(Immediate("0xffffffff"), _U32)
    match instruction.modifiers[0]:
        case "mma":
            return _build_wmma_multiply(instruction, bind)
        case "load":
            return _build_wmma_load(instruction, bind)
    return _build_wmma_store(instruction, bind)


class _FragmentPlacement:
    """Memory positions of the elements of a fragment."""

    def __init__(
        self,
        instruction: Instruction,
        count: int,
        address: Operand,
        rest: list[Operand],
        bind: Binder,
        access: AccessKind = LOAD,
    ) -> None:
        self.kind = last_type(instruction)
        rows, columns = _shape_of(instruction).of(instruction.modifiers[1])
        elements = count * elements_per_register(self.kind)
        number = (np.arange(WARP_SIZE)[:, None] * elements + np.arange(elements)) % (rows * columns)
        row, column = np.divmod(number, columns)
        if "col" in instruction.modifiers:
            row, column, columns = column, row, rows
        self._row, self._column = row.astype(np.uint64), column.astype(np.uint64)
        default = Immediate(str(columns))
        self._stride = bind.source(rest[0] if rest else default, TYPES["u32"])
        self.access = Access(address, state_space(instruction), self.kind.bytes, bind, access)

    def addresses(self, group: ThreadGroup) -> Value:
        """The address of each element: shape (elements, lanes)."""
        lanes = group.lanes
        stride = lanes.spread(self._stride.read(group.registers)).astype(np.uint64)[:, None]
        offsets = (self._row[lanes.lane] * stride + self._column[lanes.lane]) * np.uint64(self.kind.bytes)
        base = lanes.spread(self.access.address(group)).astype(np.uint64)[:, None]
        result: Value = (base + offsets).T
        return result


def _build_wmma_load(instruction: Instruction, bind: Binder) -> Operation:
    """``wmma.load.a|b|c.sync.aligned.layout.shape{.space}.type {…}, [address]{, stride}``."""
    written, address, *optional = operands_of(instruction, 2, 3)
    operands = _registers(written, bind)
    placement = _FragmentPlacement(instruction, len(operands), address, optional, bind)
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
                chosen = slice(None) if part.positions is None else part.positions
                element[chosen] = part.view(element.dtype)[part.element]
            rows.append(element)
        elements = np.stack(rows, axis=-1).reshape(-1, WARP_SIZE, len(operands), len(rows) // len(operands))
        bits = elements.view(UNSIGNED[max(kind.bits, 32)])[..., 0]
        write_registers(targets, group, bits)

    return run


def _build_wmma_store(instruction: Instruction, bind: Binder) -> Operation:
    """``wmma.store.d.sync.aligned.layout.shape{.space}.type [address], {…}{, stride}``."""
    address, stored, *optional = operands_of(instruction, 2, 3)
    operands = _registers(stored, bind)
    placement = _FragmentPlacement(instruction, len(operands), address, optional, bind, STORE)
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
                chosen = slice(None) if part.positions is None else part.positions
                part.view(elements.dtype)[part.element] = elements[chosen, number]

    return run


def _build_wmma_multiply(instruction: Instruction, bind: Binder) -> Operation:
    """``wmma.mma.sync.aligned.alayout.blayout.shape{.types}{.satfinite} d, a, b, c``."""
    types = types_of(instruction, 0)
    shape = _shape_of(instruction)
    if len(types) == 2:
        # Half precision names the types of d and c only.
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

    def run(group: ThreadGroup) -> None:
        check_whole_warps(group, line)
        matrices = []
        for sources, kind, (rows, columns) in inputs:
            elements = decoded(read_registers(sources, group), kind)
            flat = elements.reshape(len(elements), -1)[:, : rows * columns]
            matrices.append(flat.reshape(-1, rows, columns))
        left, right, accumulator = matrices
        total = multiply(left, right, accumulator, a_kind)
        elements = total.reshape(-1, WARP_SIZE, len(targets), elements_per_register(d_kind))
        write_registers(targets, group, encoded(elements, d_kind, saturates))

    return run


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {
    "mma": _build_multiply,
    "ldmatrix": _build_load,
    "stmatrix": _build_store,
    "movmatrix": _build_move,
    "wmma": _build_wmma,
}
