"""Numbers and indices in records: values of floating-point types by their bits, blocks and threads as in CUDA."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.ptx.value_types import FLOAT_BITS

if TYPE_CHECKING:
    from tui_probe.trace.launch_shape import Dim3

KINDS: Final = {1: "f16", 2: "bf16", 3: "f32", 4: "f64"}
"""Types by the numbers of the helper ``KIND``."""


def block_or_thread_index(linear: int, extent: Dim3) -> Dim3:
    """The index (x, y, z) of a linear number in a grid or block."""
    x, y, _ = extent
    return linear % x, linear // x % y, linear // (x * y)


def number_of_bits(bits: int, kind: str) -> float:
    """The number with these bits; bf16 is the upper half of f32."""
    if kind == "bf16":
        bits, kind = bits << 16, "f32"
    if kind not in FLOAT_BITS:
        return math.nan
    raw = bits.to_bytes(8, "little")[: FLOAT_BITS[kind] // 8]
    return float(np.frombuffer(raw, f"<f{FLOAT_BITS[kind] // 8}")[0])


def number_text(value: float, kind: str) -> str:
    """``NaN``, ``inf`` or ``-inf``, and the type."""
    return f"{'NaN' if math.isnan(value) else value} ({kind})"


def index_text(index: Dim3) -> str:
    """``2,0,0``."""
    return ",".join(map(str, index))
