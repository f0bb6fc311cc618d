"""Matrix operations of warps: ``mma``, ``ldmatrix``, ``stmatrix``, ``movmatrix``.

PTX ISA reference, section 9.7.14.4; ``wmma`` is in section 9.7.14.3 and in ``wmma.py``.

Products are summed in double precision, where those of half precision, bfloat16 and TF32 are exact; the sum
with the accumulator is rounded once. A device rounds, or cuts, in between, in ways that are not documented.
All lanes of a warp take part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.errors import SimulationError
from tui_probe.ptx.tree import Immediate, Operand, Vector
from tui_probe.simgpu.executor.addressing import Access, state_space
from tui_probe.simgpu.executor.checks.accesses import STORE
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
_QUAD_LANE: Final = _LANE % 4
"""Lanes form eight groups of four: the group of each lane, which has a row, and its place there."""
_MMA_SHAPES: Final = frozenset(
    {"m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32", "m8n8k4"},
)


def check_whole_warps(group: ThreadGroup, line: int) -> None:
    """Raise SimulationError if a lane of a warp is missing."""
    lanes = group.lanes
    if (lanes.active_bits[lanes.warps] != 0xFFFFFFFF).any():
        location = group.batch.describe(lanes, 0)
        raise SimulationError(f"matrix operation at line {line} needs all lanes of a warp, {location}")


def set_all_members(bind: Binder) -> None:
    """Record that all lanes of the warp take part in the instruction."""
    bind.effects.members = bind.source(Immediate("0xffffffff"), _U32)


def element_register(kind: ScalarType) -> ScalarType:
    """The type of the registers that hold elements of ``kind``: 32 bits, or one double."""
    return TYPES["b64"] if kind.bits == 64 else _U32


def elements_per_register(kind: ScalarType) -> int:
    """Return the elements of ``kind`` that a register of 32 bits holds; 1 of doubles, which have 64."""
    return max(32 // kind.bits, 1)


def decode_elements(bits: Value, kind: ScalarType) -> Value:
    """Registers (…, 32 or 64 bits) as their elements (…, elements in a register), as int64 or float64."""
    elements: Value = bits.reshape((*bits.shape, 1)).view(UNSIGNED[kind.bits])
    if kind.name == "tf32":
        # The device ignores the low bits of a single.
        return (elements & np.uint32(0xFFFFE000)).view(F32).astype(F64)
    if kind.kind == "bf":
        return from_bfloat16(elements).astype(F64)
    if kind.kind == "f8":
        return FORMATS[kind.name].decode(elements).astype(F64)
    return elements.view(kind.dtype).astype(F64 if kind.kind == "f" else S64)


def encode_elements(elements: Value, kind: ScalarType, saturates: bool) -> Value:
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

    def to_matrices(self, elements: Value) -> Value:
        """Return matrices (warps, rows, columns) of elements (warps, 32, registers, elements)."""
        result = np.zeros((len(elements), *self.shape), elements.dtype)
        result[:, self.rows, self.columns] = elements
        return result

    def to_elements(self, matrices: Value) -> Value:
        """Return the elements of matrices, the reverse of ``to_matrices``."""
        result: Value = matrices[:, self.rows, self.columns]
        return result


def _fragment_indices(registers: int, kind: ScalarType) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Lane numbers within groups, register numbers and places in a register, to compute with."""
    per_register = elements_per_register(kind)
    shape = (WARP_SIZE, registers, per_register)
    register, position = np.arange(registers)[None, :, None], np.arange(per_register)[None, None, :]
    return np.broadcast_to(_ROW[:, None, None], shape), register, position


def a_fragment(registers: int, kind: ScalarType) -> Fragment:
    """Matrix A of sixteen rows: registers go down eight rows first, then right."""
    row, register, position = _fragment_indices(registers, kind)
    per_register = position.size
    column_group = register // 2 if registers > 1 else register
    row_group = register % 2 if registers > 1 else 0 * register
    return Fragment(
        row + 8 * row_group, _QUAD_LANE[:, None, None] * per_register + position + 4 * per_register * column_group
    )


def _b_fragment(registers: int, kind: ScalarType) -> Fragment:
    """Matrix B."""
    row, register, position = _fragment_indices(registers, kind)
    per_register = position.size
    return Fragment(_QUAD_LANE[:, None, None] * per_register + position + 4 * per_register * register, row)


def accumulator_fragment(registers: int, kind: ScalarType) -> Fragment:
    """Matrices C and D of sixteen rows: pairs of neighbours, in one register or two; down, then right."""
    row, register, position = _fragment_indices(registers, kind)
    pair, position = (register, position) if kind.bits == 16 else (register // 2, register % 2 + position)
    return Fragment(row + 8 * (pair % 2), 8 * (pair // 2) + 2 * _QUAD_LANE[:, None, None] + position)


def _vector_elements(operand: Operand) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _build_mma(instruction: Instruction, bind: Binder) -> Operation:
    """``mma.sync.aligned.shape.row.col{.satfinite}.dtype.atype.btype.ctype d, a, b, c``."""
    shape = next((modifier for modifier in instruction.modifiers if modifier in _MMA_SHAPES), "")
    d_kind, a_kind, b_kind, c_kind = types_of(instruction, 4)
    if not shape or (shape == "m8n8k4" and a_kind.bits != 64) or "sp" in instruction.modifiers:
        bind.unsupported()
    d, a, b, c = (_vector_elements(operand) for operand in operands_of(instruction, 4))
    targets = [bind.target(operand, element_register(d_kind)) for operand in d]
    sources = [
        [bind.source(operand, element_register(kind)) for operand in operands]
        for operands, kind in ((a, a_kind), (b, b_kind), (c, c_kind))
    ]
    a_layout, b_layout = a_fragment(len(a), a_kind), _b_fragment(len(b), b_kind)
    c_layout, d_layout = accumulator_fragment(len(c), c_kind), accumulator_fragment(len(d), d_kind)
    saturates = "satfinite" in instruction.modifiers
    set_all_members(bind)
    line = bind.line

    def run(group: ThreadGroup) -> None:
        check_whole_warps(group, line)
        a_bits, b_bits, c_bits = (read_registers(operand, group) for operand in sources)
        total = multiply(
            a_layout.to_matrices(decode_elements(a_bits, a_kind)),
            b_layout.to_matrices(decode_elements(b_bits, b_kind)),
            c_layout.to_matrices(decode_elements(c_bits, c_kind)),
            a_kind,
        )
        write_registers(targets, group, encode_elements(d_layout.to_elements(total), d_kind, saturates))

    return run


def _build_ldmatrix(instruction: Instruction, bind: Binder) -> Operation:
    """``ldmatrix.sync.aligned.m8n8.x1|x2|x4{.trans}.shared.b16 {…}, [row address]``.

    Lane 8·j + i gives the address of row i of matrix j.
    """
    if "m8n8" not in instruction.modifiers or "b16" not in instruction.modifiers:
        bind.unsupported()
    destination, address = operands_of(instruction, 2)
    targets = [bind.target(operand, _U32) for operand in _vector_elements(destination)]
    count = len(targets)
    access = Access(address, state_space(instruction), 16, bind)
    source_registers = tuple(bind.effects.source_registers)
    is_transposed = "trans" in instruction.modifiers
    set_all_members(bind)
    line = bind.line

    def run(group: ThreadGroup) -> None:
        check_whole_warps(group, line)
        row_lanes = group.select(np.flatnonzero(group.lanes.lane < 8 * count), group.block, source_registers)
        rows = np.empty(row_lanes.lanes.count, B128)
        for part in access.parts(row_lanes):
            access.check(row_lanes, part)
            positions = slice(None) if part.positions is None else part.positions
            rows[positions] = part.view(B128)[part.element]
        matrices = rows.view(U16).reshape(-1, count, 8, 8)
        write_registers(targets, group, _registers_from_matrices(matrices, is_transposed))

    return run


def _build_stmatrix(instruction: Instruction, bind: Binder) -> Operation:
    """``stmatrix.sync.aligned.m8n8.x1|x2|x4{.trans}{.shared}.b16 [row address], {…}``: the reverse of ``ldmatrix``."""
    if "m8n8" not in instruction.modifiers or "b16" not in instruction.modifiers:
        bind.unsupported()
    address, values = operands_of(instruction, 2)
    sources = [bind.source(operand, _U32) for operand in _vector_elements(values)]
    access = Access(address, "shared", 16, bind, STORE)
    reads = tuple(bind.effects.source_registers)
    is_transposed = "trans" in instruction.modifiers
    set_all_members(bind)
    line = bind.line

    def run(group: ThreadGroup) -> None:
        check_whole_warps(group, line)
        rows = _rows_from_registers(read_registers(sources, group), is_transposed)
        row_lanes = group.select(np.flatnonzero(group.lanes.lane < 8 * len(sources)), group.block, reads)
        access.scatter(row_lanes, access.address(row_lanes), rows)

    return run


def _rows_from_registers(registers: Value, is_transposed: bool) -> Value:
    """Registers (warps, 32, matrices) to the rows of their matrices, 16 bytes each, in order."""
    packed = np.ascontiguousarray(registers.swapaxes(-1, -2))
    matrices = packed.view(U16).reshape(*packed.shape[:2], 8, 8)
    if is_transposed:
        matrices = matrices.swapaxes(-1, -2)
    return np.ascontiguousarray(matrices).reshape(-1, 8).view(B128)[:, 0]


def _registers_from_matrices(matrices: Value, is_transposed: bool) -> Value:
    """Matrices of 16-bit elements (warps, matrices, 8, 8) to registers (warps, 32, matrices)."""
    if is_transposed:
        matrices = matrices.swapaxes(-1, -2)
    # Each lane takes two neighbours of a row, lane after lane.
    packed = np.ascontiguousarray(matrices).view(U32).reshape(len(matrices), matrices.shape[1], WARP_SIZE)
    return packed.swapaxes(-1, -2)


def _build_movmatrix(instruction: Instruction, bind: Binder) -> Operation:
    """``movmatrix.sync.aligned.m8n8.trans.b16 d, a``: the transpose of a matrix held by a warp."""
    destination, source = operands_of(instruction, 2)
    target, value = bind.target(destination, _U32), bind.source(source, _U32)
    set_all_members(bind)
    line = bind.line

    def run(group: ThreadGroup) -> None:
        check_whole_warps(group, line)
        values = np.ascontiguousarray(group.lanes.spread(value.read(group.registers)))
        matrices = values.view(U16).reshape(-1, 1, 8, 8)
        write_registers([target], group, _registers_from_matrices(matrices, is_transposed=True))

    return run


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {
    "mma": _build_mma,
    "ldmatrix": _build_ldmatrix,
    "stmatrix": _build_stmatrix,
    "movmatrix": _build_movmatrix,
}
