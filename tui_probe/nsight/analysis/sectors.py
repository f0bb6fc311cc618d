"""Requests and sectors of kernels against what a tensor of a given shape needs.

    expected sectors = elements × bytes of an element / 32        each sector of the tensor once
    at most            elements                                   each element in a sector of its own

elements = batch × heads × sequence length × head dimension. A kernel that writes the tensor once, well coalesced,
stores exactly the expected sectors. Attention that is made for training also writes the logarithm of each row's sum of
exponentials, one fp32 a row and head::

    with row sums = expected sectors + batch × heads × sequence length × 4 / 32
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from tui_probe.nsight.analysis.kernel_figures import KernelFigures

SECTOR: Final = 32
ELEMENT_BYTES: Final = {
    "fp64": 8, "int64": 8, "fp32": 4, "tf32": 4, "int32": 4, "fp16": 2, "bf16": 2, "int16": 2, "fp8": 1, "int8": 1,
}  # fmt: skip
Verdict = Literal["equal", "with row sums", "within", "below", "above"]


@dataclass(frozen=True, slots=True)
class Tensor:
    """The tensor that a kernel should write, as the user gives it."""

    length: int
    width: int
    dtype: str
    heads: int = 1
    batch: int = 1

    @property
    def elements(self) -> int:
        return self.batch * self.heads * self.length * self.width

    @property
    def sectors(self) -> int:
        """The fewest sectors that hold it."""
        return -(-self.elements * ELEMENT_BYTES[self.dtype] // SECTOR)

    @property
    def sectors_with_row_sums(self) -> int | None:
        """Those and the sectors of one fp32 a row and head; None where a row is no larger than its sum.

        Such a tensor is an array, and twice its sectors are those of a store with stride.
        """
        if self.width * ELEMENT_BYTES[self.dtype] <= ELEMENT_BYTES["fp32"] or self.width == 1:
            return None
        return self.sectors - (-self.batch * self.heads * self.length * ELEMENT_BYTES["fp32"] // SECTOR)


def verdict_of(sectors: float | None, tensor: Tensor | None) -> Verdict | None:
    """How the sectors of a launch compare with a tensor's; None where either is not known."""
    if sectors is None or tensor is None:
        return None
    if abs(sectors - tensor.sectors) < 0.5:
        return "equal"
    with_sums = tensor.sectors_with_row_sums
    if with_sums is not None and abs(sectors - with_sums) < 0.5:
        return "with row sums"
    if sectors < tensor.sectors:
        return "below"
    return "within" if sectors <= tensor.elements else "above"


def stores_tensor(kernel: KernelFigures, tensor: Tensor | None) -> bool:
    """Whether a kernel stores exactly the sectors of the tensor, perhaps with the sums of its rows."""
    return verdict_of(kernel.store_sectors, tensor) in ("equal", "with row sums")
