"""Peak of tensor cores per SM and clock."""

from __future__ import annotations

from typing import Final

TENSOR_HALF: Final = {"7.0": 1024, "7.5": 1024, "8.0": 2048, "8.6": 1024, "8.9": 1024, "9.0": 4096}
"""Dense operations in half precision of the tensor cores of an SM in a clock, by compute capability."""


def products_per_clock(capability: str) -> int | None:
    """Return the multiply-adds in half precision of an SM in a clock; None for an unknown GPU."""
    operations = TENSOR_HALF.get(capability)
    return None if operations is None else operations // 2
