"""Types of the operands of matrix instructions, read off the PTX of a kernel.

    mma, wgmma, wmma   .D.A.B[.C]: the type of A        wmma with D and C alone: half precision

It tells what a kernel multiplies in, not how often: counts are of instructions in the text.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from tui_probe.input_limits import PTX_TEXT
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from pathlib import Path

_MATRIX: Final = re.compile(r"^[^/\n]*?\b(?:mma\.s(?:ync|p)|wmma\.mma|wgmma\.mma_async)\b([.:\w]*)", re.MULTILINE)
_TYPES: Final = {
    "f16": "fp16", "bf16": "bf16", "tf32": "tf32", "f32": "fp32", "f64": "fp64", "e4m3": "fp8", "e5m2": "fp8",
    "s32": "int32", "s8": "int8", "u8": "int8", "s4": "int4", "u4": "int4", "b1": "int1",
}  # fmt: skip


def matrix_types(ptx: str) -> dict[str, float]:
    """How many matrix instructions the text holds, by the type of their operands."""
    found: Counter[str] = Counter()
    for match in _MATRIX.finditer(ptx):
        types = [_TYPES[word] for word in match[1].split(".") if word in _TYPES]
        if types:
            found[types[1] if len(types) > 2 else "fp16"] += 1
    return {name: float(count) for name, count in found.items()}


def matrix_types_of(folder: Path | None) -> dict[str, float]:
    """The same of a kernel's folder in a trace; empty where its PTX is not there."""
    if folder is None:
        return {}
    try:
        return matrix_types(read_within(folder / "pruned.ptx", PTX_TEXT).decode("utf-8", "replace"))
    except OSError:
        return {}
