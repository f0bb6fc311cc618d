"""Matrix products of four warps: ``wgmma``.

A product is computed when it is issued: each warp takes the sixteen rows of A that are its own. What follows in the
program may not touch its operands before ``wgmma.wait_group``, so the time between cannot be seen.
Matrices in shared memory are identified by a descriptor. Their tiles are made of pieces of 16 bytes, eight to a column;
``.swizzle`` modes exchange bits 4 to 6 of an address with those three above, as does CUDA's tensor copy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tui_probe.errors import SimulationError
from tui_probe.ptx.tree import Immediate, Vector
from tui_probe.simgpu.executor.addressing import PointerAccess
from tui_probe.simgpu.executor.matrix import (
    a_fragment,
    accumulator_fragment,
    check_whole_warps,
    decode_elements,
    element_register,
    encode_elements,
    multiply,
    read_registers,
    set_all_members,
    write_registers,
)
from tui_probe.simgpu.executor.model import WARP_SIZE
from tui_probe.simgpu.executor.scalars import (
    B128,
    PREDICATE,
    TYPES,
    UNSIGNED,
    ScalarType,
    Value,
    operands_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.operations import Operation, SourceOperand
    from tui_probe.simgpu.executor.threads import ThreadGroup

_SHAPE: Final = re.compile(r"m64n(\d+)k(\d+)")
_WARP_ROWS: Final = 16
"""Rows of A and D that a warp has."""
_WARPGROUP_WARPS: Final = 4
"""Warps of a warpgroup."""
_TILE_DEPTH: Final = 32
"""Bytes of the inner dimension that a product takes."""
_PIECE_BYTES: Final = 16
"""Bytes that stay side by side in shared memory."""
_PIECES_PER_ROW: Final = {0: 1, 1: 8, 2: 4, 3: 2}
"""Pieces of a row by the descriptor's bits 62 and 63: no swizzle, or 128, 64, 32 bytes."""


class _PieceOffsets(NamedTuple):
    """Offsets of pieces of a tile: bytes from the start, steps of the leading dimension, steps of the stride."""

    byte_offsets: NDArray[np.int64]
    leading_steps: NDArray[np.int64]
    stride_steps: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Tile:
    """A matrix in shared memory: ``lines`` rows (of A) or columns (of B), each with 32 bytes of the inner dimension.

    ``transposed`` tells that those of one place of the inner dimension are side by side, in place of those of a line.
    """

    lines: int
    kind: ScalarType
    transposed: bool

    @property
    def row_pieces(self) -> int:
        """Pieces of a row of the tile, as it is in memory."""
        return (self.lines * self.kind.bytes if self.transposed else _TILE_DEPTH) // _PIECE_BYTES

    @property
    def piece_count(self) -> int:
        """Pieces of the tile."""
        rows = _TILE_DEPTH // self.kind.bytes if self.transposed else self.lines
        return rows * self.row_pieces

    def offsets(self, swizzle: int) -> _PieceOffsets:
        """Return the offsets of the pieces, row after row."""
        row, piece = np.divmod(np.arange(self.piece_count), self.row_pieces)
        row_pieces = _PIECES_PER_ROW[swizzle]
        byte_offsets = _PIECE_BYTES * row_pieces * (row % 8)
        if not swizzle:
            return (
                _PieceOffsets(byte_offsets, row // 8, piece)
                if self.transposed
                else _PieceOffsets(byte_offsets, piece, row // 8)
            )
        if not self.transposed:
            return _PieceOffsets(byte_offsets + _PIECE_BYTES * piece, np.zeros_like(piece), row // 8)
        return _PieceOffsets(byte_offsets + _PIECE_BYTES * (piece % row_pieces), piece // row_pieces, row // 8)

    def addresses(self, descriptors: NDArray[np.uint64], line: int) -> NDArray[np.uint64]:
        """The address of each piece, by warps: shape (warps, pieces). Raises SimulationError for a base offset."""
        fields = (descriptors >> np.uint64(bit) & np.uint64(0x3FFF) for bit in (0, 16, 32))
        start, leading, stride = (field << np.uint64(4) for field in fields)
        modes = descriptors >> np.uint64(62)
        if (descriptors >> np.uint64(49) & np.uint64(7)).any():
            raise SimulationError(f"wgmma at line {line} has a base offset in its descriptor, which is not supported")
        result = np.empty((len(descriptors), self.piece_count), np.uint64)
        for mode in np.unique(modes):
            warps = modes == mode
            byte_offsets, leading_steps, stride_steps = (values.astype(np.uint64) for values in self.offsets(int(mode)))
            address = start[warps, None] + byte_offsets
            address += leading_steps * leading[warps, None] + stride_steps * stride[warps, None]
            bits = address >> np.uint64(7) & np.uint64(_PIECES_PER_ROW[int(mode)] - 1)
            result[warps] = address ^ bits << np.uint64(4)
        return result

    def read(self, access: PointerAccess, group: ThreadGroup, descriptors: NDArray[np.uint64], line: int) -> Value:
        """Matrices (warps, lines, inner dimension), as int64 or float64."""
        addresses = self.addresses(descriptors, line)
        warps, count = addresses.shape
        padded_count = -(-count // WARP_SIZE) * WARP_SIZE
        padded_addresses = np.repeat(addresses[:, :1], padded_count, axis=1)
        padded_addresses[:, :count] = addresses
        pieces = np.empty((warps, padded_count), B128)
        for start in range(0, padded_count, WARP_SIZE):
            lane_pieces = slice(start, start + WARP_SIZE)  # a piece of each lane
            pieces[:, lane_pieces] = access.gather(group, padded_addresses[:, lane_pieces].reshape(-1), B128).reshape(
                warps, WARP_SIZE
            )
        elements = decode_elements(pieces[:, :count].copy().view(UNSIGNED[self.kind.bits]), self.kind)
        if not self.transposed:
            return elements.reshape(warps, self.lines, -1)
        return elements.reshape(warps, -1, self.lines).swapaxes(1, 2)


def _build_wgmma(instruction: Instruction, bind: Binder) -> Operation:
    if "mma_async" in instruction.modifiers:
        return _WarpgroupProduct(instruction, bind).run
    return _no_operation


def _no_operation(group: ThreadGroup) -> None:
    """``wgmma.fence``, ``commit_group`` and ``wait_group``: products are there as soon as they are issued."""


class _WarpgroupProduct:
    """``wgmma.mma_async.sync.aligned.shape.dtype.atype.btype d, a, b, scale-d, imm-scale-a, imm-scale-b, …``."""

    def __init__(self, instruction: Instruction, bind: Binder) -> None:
        shapes = [match for modifier in instruction.modifiers if (match := _SHAPE.fullmatch(modifier))]
        kinds = [TYPES[name] for name in instruction.modifiers if name in TYPES]
        if len(shapes) != 1 or len(kinds) != 3 or "sp" in instruction.modifiers:
            bind.unsupported()
        columns = int(shapes[0][1])
        d_kind, self._a_kind, self._b_kind = kinds
        d, a, b, scale, *flags = operands_of(instruction, 4, 8)
        if not isinstance(d, Vector):
            bind.unsupported()
        signs, is_transposed = _signs_and_transposes(flags, bind, a_in_registers=isinstance(a, Vector))
        self._sign = signs[0] * signs[1]
        self._line = bind.line
        self._d_kind = d_kind
        self._saturates = "satfinite" in instruction.modifiers
        self._access = PointerAccess(_PIECE_BYTES, bind.line, "shared")
        self._targets = [bind.target(element, element_register(d_kind)) for element in d.elements]
        self._accumulator_sources = [bind.source(element, element_register(d_kind)) for element in d.elements]
        self._accumulator = accumulator_fragment(len(d.elements), d_kind)
        self._fragments, self._a = self._bind_a(a, bind)
        self._a_tile = _Tile(_WARP_ROWS * _WARPGROUP_WARPS, self._a_kind, is_transposed[0])
        self._b = bind.source(b, TYPES["u64"])
        self._b_tile = _Tile(columns, self._b_kind, is_transposed[1])
        self._scale_d = bind.source(scale, PREDICATE)
        set_all_members(bind)

    def _bind_a(self, operand: Operand, bind: Binder) -> tuple[list[SourceOperand], SourceOperand | None]:
        """A in registers, or its descriptor."""
        if isinstance(operand, Vector):
            return [bind.source(element, TYPES["u32"]) for element in operand.elements], None
        return [], bind.source(operand, TYPES["u64"])

    def run(self, group: ThreadGroup) -> None:
        check_whole_warps(group, self._line)
        registers = group.registers
        a_rows = self._a_rows(group)
        b_columns = self._b_tile.read(self._access, group, self._descriptors(self._b, group), self._line)
        adds_accumulator = group.lanes.spread(self._scale_d.read(registers))[::WARP_SIZE]
        accumulator = self._accumulator.to_matrices(
            decode_elements(read_registers(self._accumulator_sources, group), self._d_kind)
        )
        accumulator[~adds_accumulator] = 0
        total = multiply(a_rows * self._sign, b_columns.swapaxes(1, 2), accumulator, self._a_kind)
        elements = self._accumulator.to_elements(total)
        write_registers(self._targets, group, encode_elements(elements, self._d_kind, self._saturates))

    def _a_rows(self, group: ThreadGroup) -> Value:
        """The rows of A of each warp: shape (warps, 16, inner dimension)."""
        if self._a is None:
            fragment = a_fragment(len(self._fragments), self._a_kind)
            return fragment.to_matrices(decode_elements(read_registers(self._fragments, group), self._a_kind))
        tile = self._a_tile.read(self._access, group, self._descriptors(self._a, group), self._line)
        warps = group.lanes.thread[::WARP_SIZE] // WARP_SIZE % _WARPGROUP_WARPS
        return tile.reshape(len(tile), _WARPGROUP_WARPS, _WARP_ROWS, -1)[np.arange(len(tile)), warps]

    def _descriptors(self, source: SourceOperand, group: ThreadGroup) -> NDArray[np.uint64]:
        return group.lanes.spread(source.read(group.registers))[::WARP_SIZE].astype(np.uint64)


def _signs_and_transposes(flags: list[Operand], bind: Binder, *, a_in_registers: bool) -> tuple[list[int], list[bool]]:
    """Return the signs of A and B, and which of them is transposed. All may be left out; A in registers is never
    transposed.
    """
    numbers = [int(flag.text) for flag in flags if isinstance(flag, Immediate)]
    if len(numbers) != len(flags) or len(numbers) not in (0, 2, 3 if a_in_registers else 4):
        bind.unsupported()
    signs, transposes = numbers[:2] or [1, 1], numbers[2:] or [0, 0]
    if len(transposes) == 1:
        transposes = [0, *transposes]
    return signs, [bool(flag) for flag in transposes]


BUILDERS: Final[dict[str, Callable[[Instruction, Binder], Operation]]] = {"wgmma": _build_wgmma}
