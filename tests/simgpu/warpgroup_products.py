"""Products of four warps (``wgmma``) on matrices in shared memory: their PTX, and what they give by elements."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from tui_probe.simgpu.executor.rounding import from_bfloat16

Array = np.ndarray[Any, Any]

SHARED_BYTES = 32768
COLUMNS = 16
_ACROSS = {0: 1, 1: 8, 2: 4, 3: 2}
_RESULTS = {"f32": "f32", "f16": "b32", "s32": "s32"}


@dataclass(frozen=True)
class Operand:
    """A matrix in shared memory; offsets in bytes, ``swizzle`` as in a descriptor."""

    start: int
    leading: int
    stride: int
    swizzle: int = 0
    transposed: bool = False

    @property
    def descriptor(self) -> int:
        return self.start >> 4 | self.leading >> 4 << 16 | self.stride >> 4 << 32 | self.swizzle << 62

    def place(self, line: int, inner: int, size: int) -> int:
        """Return the offset of the element of ``size`` bytes of a line (a row of A, a column of B)."""
        down, right = (inner, line) if self.transposed else (line, inner)
        piece, remainder = divmod(right * size, 16)
        across = _ACROSS[self.swizzle]
        address = self.start + down % 8 * 16 * across + remainder
        if not self.swizzle:
            steps = (piece, down // 8) if self.transposed else (down // 8, piece)
            address += steps[0] * self.stride + steps[1] * self.leading
        else:
            address += piece % across * 16 + piece // across * self.leading + down // 8 * self.stride
        return address ^ (address >> 7) % across << 4


@dataclass(frozen=True)
class Product:
    """``wgmma`` of a shape with types; A comes from registers where ``a`` is None. ``adds`` is its scale-d."""

    b: Operand
    a: Operand | None = None
    types: tuple[str, str, str] = ("f32", "f16", "f16")
    adds: bool = False
    negative: bool = False

    @property
    def size(self) -> int:
        """Bytes of an element of A and B."""
        return {"f16": 2, "bf16": 2, "tf32": 4}.get(self.types[1], 1)

    @property
    def depth(self) -> int:
        return 32 // self.size

    @property
    def source(self) -> str:
        """A kernel ``multiplies(out, image, fragments, a, b)`` of 128 threads: 8 words of D a thread."""
        count = COLUMNS // 4 if self.types[0] == "f16" else COLUMNS // 2
        results = ", ".join(f"%d{number}" for number in range(count))
        left = "%rda" if self.a else "{%r4, %r5, %r6, %r7}"
        flags = "" if self.types[0] == "s32" else f", {-1 if self.negative else 1}, 1"
        if self.types[1] in ("f16", "bf16"):
            flags += (f", {int(self.a.transposed)}" if self.a else "") + f", {int(self.b.transposed)}"
        name = ".".join((f"m64n{COLUMNS}k{self.depth}", *self.types))
        kind, initial = _RESULTS[self.types[0]], {"f32": "0f3F800000", "f16": "0x3C003C00", "s32": "1"}[self.types[0]]
        return f""".version 8.0
.target sm_90a
.address_size 64
.visible .entry multiplies(.param .u64 out, .param .u64 image, .param .u64 fragments, .param .u64 a, .param .u64 b) {{
    .shared .align 1024 .b8 tile[{SHARED_BYTES}];
    .reg .b32 %r<8>; .reg .b64 %rd<6>; .reg .b64 %rda, %rdb; .reg .pred %p, %q; .reg .{kind} %d<8>;
    ld.param.u64 %rd1, [image]; ld.param.u64 %rd2, [out]; ld.param.u64 %rd3, [fragments];
    ld.param.u64 %rda, [a]; ld.param.u64 %rdb, [b];
    mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mul.wide.u32 %rd4, %r1, 4; add.u64 %rd1, %rd1, %rd4;
    mad.lo.u32 %r3, %r1, 4, %r2; mov.u32 %r0, 0;
copy:
    ld.global.b32 %r4, [%rd1]; st.shared.b32 [%r3], %r4;
    add.u64 %rd1, %rd1, 512; add.u32 %r3, %r3, 512; add.u32 %r0, %r0, 512;
    setp.lt.u32 %p, %r0, {SHARED_BYTES}; @%p bra copy;
    shr.u32 %r2, %r2, 4; cvt.u64.u32 %rd5, %r2; add.u64 %rda, %rda, %rd5; add.u64 %rdb, %rdb, %rd5;
    mul.wide.u32 %rd4, %r1, 16; add.u64 %rd3, %rd3, %rd4; ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd3];
    {" ".join(f"mov.b32 %d{number}, {initial};" for number in range(8))}
    setp.ne.u32 %q, {int(self.adds)}, 0;
    fence.proxy.async.shared::cta; bar.sync 0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.{name} {{{results}}}, {left}, %rdb, %q{flags};
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    mul.wide.u32 %rd4, %r1, 32; add.u64 %rd2, %rd2, %rd4;
    {" ".join(f"st.global.{kind} [%rd2+{4 * number}], %d{number};" for number in range(8))}
    ret;
}}
"""

    def exact(self, image: Array, fragments: Array) -> Array:
        """D, 64 by ``COLUMNS``, of a shared memory and of words in registers, shape (128, 4)."""
        right = self._elements(self.b, COLUMNS, image)
        left = self._elements(self.a, 64, image) if self.a else self._fragments(fragments)
        sign = -1 if self.negative else 1
        return sign * (left @ right.T) + (1 if self.adds else 0)

    def _elements(self, operand: Operand, lines: int, image: Array) -> Array:
        places = [[operand.place(line, inner, self.size) for inner in range(self.depth)] for line in range(lines)]
        return self._decoded(image[np.array(places)[..., None] + np.arange(self.size)])

    def _fragments(self, words: Array) -> Array:
        elements = self._decoded(words.view(np.uint8).reshape(128, 4, -1, self.size))
        width = elements.shape[-1]
        left = np.zeros((64, self.depth))
        for thread in range(128):
            for register in range(4):
                row = thread // 32 * 16 + thread % 32 // 4 + register % 2 * 8
                first = thread % 4 * width + register // 2 * 4 * width
                left[row, first : first + width] = elements[thread, register]
        return left

    def _decoded(self, pieces: Array) -> Array:
        """Numbers of their bytes, in the last axis."""
        pieces = np.ascontiguousarray(pieces)
        match self.types[1]:
            case "f16":
                return pieces.view(np.float16)[..., 0].astype(float)
            case "bf16":
                return from_bfloat16(pieces.view(np.uint16))[..., 0].astype(float)
            case "tf32":
                return (pieces.view(np.uint32) & 0xFFFFE000).view(np.float32)[..., 0].astype(float)
            case "s8" | "u8":
                return pieces.view(np.int8 if self.types[1] == "s8" else np.uint8)[..., 0].astype(float)
        return eight_bits(self.types[1])[pieces[..., 0]]

    def image(self, generator: np.random.Generator, size: int = SHARED_BYTES) -> Array:
        """Bytes of small numbers, whose products are exact."""
        numbers = generator.integers(-4, 5, size)
        match self.types[1]:
            case "f16":
                return numbers[: size // 2].astype(np.float16).view(np.uint8)
            case "bf16" | "tf32":
                singles = numbers[: size // self.size].astype(np.float32).view(np.uint32)
                return ((singles >> 16).astype(np.uint16) if self.size == 2 else singles).view(np.uint8)
            case "s8" | "u8":
                return numbers.astype(np.int8).view(np.uint8)
        codes = {number: code for code, number in enumerate(eight_bits(self.types[1])) if code != 0x80}
        return np.array([codes[number] for number in numbers.tolist()], np.uint8)

    def result(self, words: Array) -> Array:
        """D of what the threads stored, shape (128, 8) of 32-bit words."""
        product = np.zeros((64, COLUMNS))
        kind = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[self.types[0]]
        values = words.view(kind)[:, :8].astype(float)
        for thread in range(128):
            for number in range(8):
                row = thread // 32 * 16 + thread % 32 // 4 + number // 2 % 2 * 8
                product[row, number // 4 * 8 + thread % 4 * 2 + number % 2] = values[thread, number]
        return product


@functools.cache
def eight_bits(name: str) -> Array:
    """The number of each code of ``e4m3`` or ``e5m2``, from what its bits stand for."""
    fraction, bias = (3, 7) if name == "e4m3" else (2, 15)
    numbers = []
    for code in range(256):
        exponent, low = code >> fraction & (1 << 7 - fraction) - 1, code & (1 << fraction) - 1
        size = (low + ((1 << fraction) if exponent else 0)) * 2.0 ** (max(exponent, 1) - bias - fraction)
        is_special = code & 0x7F == 0x7F if name == "e4m3" else exponent == 31
        numbers.append(np.nan if is_special else -size if code & 0x80 else size)
    return np.array(numbers)


_RIGHT = 16384
_SWIZZLES = ((1, 8), (2, 4), (3, 2))
_BY_INNER = [Operand(0, 128, 256), *(Operand(0, 0, 128 * across, mode) for mode, across in _SWIZZLES)]
_RIGHT_BY_INNER = [
    Operand(_RIGHT, 256, 512),
    *(Operand(_RIGHT + 32 * (mode == 1), 0, 128 * across, mode) for mode, across in _SWIZZLES),
]
_BY_LINE = [
    Operand(0, 2048, 128, 0, True),
    *(Operand(0, 4096, 128 * across, mode, True) for mode, across in _SWIZZLES),
]
_RIGHT_BY_LINE = [
    Operand(_RIGHT, 1024, 256, 0, True),
    *(Operand(_RIGHT, 4096, 128 * across, mode, True) for mode, across in _SWIZZLES),
]
PRODUCTS = {
    **{f"inner-{mode}": Product(_RIGHT_BY_INNER[mode], _BY_INNER[mode]) for mode in range(4)},
    **{f"lines-{mode}": Product(_RIGHT_BY_LINE[mode], _BY_LINE[mode]) for mode in range(4)},
    "mixed": Product(_RIGHT_BY_LINE[1], _BY_INNER[2], adds=True, negative=True),
    "registers": Product(_RIGHT_BY_INNER[1], adds=True),
    "half-sum": Product(_RIGHT_BY_LINE[2], types=("f16", "f16", "f16"), adds=True),
    "bf16": Product(_RIGHT_BY_LINE[3], _BY_INNER[1], ("f32", "bf16", "bf16")),
    "tf32": Product(_RIGHT_BY_INNER[1], _BY_INNER[0], ("f32", "tf32", "tf32")),
    "tf32-registers": Product(_RIGHT_BY_INNER[2], None, ("f32", "tf32", "tf32"), adds=True),
    "bytes": Product(_RIGHT_BY_INNER[1], _BY_INNER[1], ("s32", "s8", "s8"), adds=True),
    "bytes-registers": Product(_RIGHT_BY_INNER[3], None, ("s32", "u8", "u8")),
    "e4m3": Product(_RIGHT_BY_INNER[0], _BY_INNER[3], ("f32", "e4m3", "e4m3")),
    "e5m2-registers": Product(_RIGHT_BY_INNER[1], None, ("f32", "e5m2", "e5m2"), negative=True),
}
