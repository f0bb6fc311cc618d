"""The critical kernel of a program, with the evidence: tensor work, data types, sectors of its tensor.

In turn, until one kernel is left:

    1. kernels of the measured iterations, where these are given, or found and hold most of the time
    2. those of them that use tensor cores, by activity of the tensor pipe (ncu) or counted operations (probes);
       where none does, all
    3. those that store exactly the sectors of the expected tensor, where one is given and any does; not where no
       kernel uses tensor cores, since then each that only copies or converts the tensor qualifies
    4. the one with the most tensor work, or where none uses tensor cores the most time, by a tenth at least

Each kernel's type comes from its instructions; whether it is bound by compute or memory, from the parts of the peak
that it reaches.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.input_limits import PTX_TEXT
from tui_probe.trace.launch_shape import SECTOR_BYTES
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from tui_probe.nsight.analysis.kernel_groups import Shape
    from tui_probe.nsight.analysis.kernel_metrics import KernelMetrics

_MATRIX_INSTRUCTION: Final = re.compile(
    r"^[^/\n]*?\b(?:mma\.s(?:ync|p)|wmma\.mma|wgmma\.mma_async)\b([.:\w]*)", re.MULTILINE
)
_TYPE_NAMES: Final = {
    "f16": "fp16", "bf16": "bf16", "tf32": "tf32", "f32": "fp32", "f64": "fp64", "e4m3": "fp8", "e5m2": "fp8",
    "s32": "int32", "s8": "int8", "u8": "int8", "s4": "int4", "u4": "int4", "b1": "int1",
}  # fmt: skip
ELEMENT_BYTES: Final = {
    "fp64": 8, "int64": 8, "fp32": 4, "tf32": 4, "int32": 4, "fp16": 2, "bf16": 2, "int16": 2, "fp8": 1, "int8": 1,
}  # fmt: skip
SectorMatch = Literal["equal", "with row sums", "within", "below", "above"]
Bound = Literal["compute", "memory", "neither"]
_TOLERANCE: Final = 0.5
"""Means of counts that differ by less are equal."""
_MIN_LEAD: Final = 1.1
"""Factor by which a kernel must do more than the next one to be the critical one."""
_MIN_BOUND_PERCENT: Final = 60.0
"""Percent of the peak above which ncu's own rules call a unit the bottleneck; below it, latency is."""
_TYPE_PATTERNS: Final = (
    ("bf16", re.compile(r"bf16|bfloat16", re.IGNORECASE)),
    ("fp16", re.compile(r"(?<![a-z])f(?:p)?16|half", re.IGNORECASE)),
    ("tf32", re.compile(r"tf32", re.IGNORECASE)),
    ("fp64", re.compile(r"f(?:p)?64|double", re.IGNORECASE)),
)
"""Types that a name tells. fp32 is not among them: kernels of every type add up in it, and say so in their names."""


def matrix_types(ptx: str) -> dict[str, float]:
    """Count the matrix instructions of a kernel's PTX by the type of their operand A.

    ``mma``, ``wgmma`` and ``wmma`` name their types as ``.D.A.B[.C]``; ``wmma`` with D and C only is in half
    precision. Counts are of instructions in the text, not of executions.
    """
    counts: Counter[str] = Counter()
    for match in _MATRIX_INSTRUCTION.finditer(ptx):
        types = [_TYPE_NAMES[word] for word in match[1].split(".") if word in _TYPE_NAMES]
        if types:
            counts[types[1] if len(types) > 2 else "fp16"] += 1
    return {name: float(count) for name, count in counts.items()}


def matrix_types_of(folder: Path | None) -> dict[str, float]:
    """Return the matrix types of a kernel's directory in a trace; {} without its PTX."""
    if folder is None:
        return {}
    try:
        return matrix_types(read_within(folder / "pruned.ptx", PTX_TEXT).decode("utf-8", "replace"))
    except OSError:
        return {}


@dataclass(frozen=True, slots=True)
class ExpectedTensor:
    """The tensor that a kernel should write, as the user gives it: ``length`` rows of ``width`` elements per head.

    The sectors that a kernel stores are compared with those of the tensor::

        expected sectors = elements × bytes of an element / 32        each sector of the tensor once
        at most            elements                                   each element in a sector of its own
        with row sums    = expected sectors + batch × heads × length × 4 / 32

    A kernel that writes the tensor once, well coalesced, stores exactly the expected sectors. Attention that is made
    for training also writes the logarithm of each row's sum of exponentials, one fp32 per row and head.
    """

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
        return -(-self.elements * ELEMENT_BYTES[self.dtype] // SECTOR_BYTES)

    @property
    def sectors_with_row_sums(self) -> int | None:
        """Add the sectors of one fp32 per row and head; None if a row is not larger than its sum.

        Such a tensor is an array, and twice its sectors are those of a store with stride.
        """
        if self.width * ELEMENT_BYTES[self.dtype] <= ELEMENT_BYTES["fp32"] or self.width == 1:
            return None
        return self.sectors - (-self.batch * self.heads * self.length * ELEMENT_BYTES["fp32"] // SECTOR_BYTES)


def compare_sectors(sectors: float | None, tensor: ExpectedTensor | None) -> SectorMatch | None:
    """Compare the sectors of a launch with a tensor's; None if either is not known."""
    if sectors is None or tensor is None:
        return None
    if abs(sectors - tensor.sectors) < _TOLERANCE:
        return "equal"
    sectors_with_sums = tensor.sectors_with_row_sums
    if sectors_with_sums is not None and abs(sectors - sectors_with_sums) < _TOLERANCE:
        return "with row sums"
    if sectors < tensor.sectors:
        return "below"
    return "within" if sectors <= tensor.elements else "above"


def stores_tensor(kernel: KernelMetrics, tensor: ExpectedTensor | None) -> bool:
    """Return whether a kernel stores exactly the sectors of the tensor, perhaps with the sums of its rows."""
    return compare_sectors(kernel.store_sectors, tensor) in ("equal", "with row sums")


@dataclass(frozen=True, slots=True)
class Step:
    """One question that was put to the kernels, and its answer."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class CriticalKernel:
    """The critical kernel (None: nothing tells), the steps that led to it, and every kernel by tensor work and time."""

    kernel: KernelMetrics | None
    steps: Sequence[Step]
    ranking: Sequence[KernelMetrics]


@dataclass(frozen=True, slots=True)
class DataType:
    """The type that a kernel computes in. ``evidence`` says how it is known."""

    name: str
    evidence: str


def find_critical(
    kernels: Sequence[KernelMetrics],
    tensor: ExpectedTensor | None = None,
    iterated_shapes: Collection[Shape] | None = None,
) -> CriticalKernel:
    """The critical kernel of one program; ``iterated_shapes`` is None if unknown."""
    ranked = sorted(kernels, key=lambda kernel: (-(kernel.tensor_work or 0.0), -(kernel.share or 0.0)))
    in_iterations, iterations_step = _select_iterated(ranked, iterated_shapes)
    tensor_kernels, tensor_step = _select_tensor_kernels(in_iterations)
    storing_kernels, stores_step = _select_storing(tensor_kernels, tensor)
    heaviest_kernels, work_step = _select_heaviest(storing_kernels)
    kernel = heaviest_kernels[0] if len(heaviest_kernels) == 1 else None
    return CriticalKernel(kernel, [iterations_step, tensor_step, stores_step, work_step], ranked)


def _select_iterated(
    kernels: list[KernelMetrics], iterated_shapes: Collection[Shape] | None
) -> tuple[list[KernelMetrics], Step]:
    question = "kernels launched in the iterations"
    if iterated_shapes is None:
        return kernels, Step(
            question, "not checked: the iterations are unknown, or take less than half of the total time"
        )
    iterated_kernels = [kernel for kernel in kernels if kernel.shape in iterated_shapes]
    if not iterated_kernels:
        return kernels, Step(question, f"none of {len(kernels)}; no kernel is excluded")
    return iterated_kernels, Step(question, f"{len(iterated_kernels)} of {len(kernels)}")


def _select_tensor_kernels(kernels: list[KernelMetrics]) -> tuple[list[KernelMetrics], Step]:
    question = "kernels with tensor core work"
    if all(kernel.uses_tensor_cores is None for kernel in kernels):
        return kernels, Step(
            question,
            "not measured: collect sm__pipe_tensor_cycles_active, or run a probe that counts tensor operations",
        )
    tensor_kernels = [kernel for kernel in kernels if kernel.uses_tensor_cores]
    if tensor_kernels:
        return tensor_kernels, Step(question, f"{len(tensor_kernels)} of {len(kernels)}")
    max_activity = max((kernel.tensor_activity or 0.0 for kernel in kernels), default=0.0)
    activity_text = (
        f" (tensor pipe utilization up to {max_activity:.2g} %; other instructions use this pipe, too)"
        if max_activity
        else ""
    )
    return kernels, Step(question, f"none of {len(kernels)}{activity_text}; no kernel is excluded")


def _select_storing(kernels: list[KernelMetrics], tensor: ExpectedTensor | None) -> tuple[list[KernelMetrics], Step]:
    question = "kernels that store the expected tensor"
    if tensor is None:
        return kernels, Step(question, "not checked: pass --seq-len, --head-dim and --dtype")
    if all(kernel.store_sectors is None for kernel in kernels):
        return kernels, Step(question, "store sectors not measured")
    expected_sectors = f"{tensor.sectors:,}".replace(",", " ")
    storing_kernels = [kernel for kernel in kernels if stores_tensor(kernel, tensor)]
    if storing_kernels and all(kernel.uses_tensor_cores is False for kernel in kernels):
        return kernels, Step(
            question,
            f"{len(storing_kernels)} of {len(kernels)}, but copy kernels also store the tensor; no kernel is excluded",
        )
    if not storing_kernels:
        return kernels, Step(question, f"no kernel stores {expected_sectors} sectors; no kernel is excluded")
    return storing_kernels, Step(question, f"{len(storing_kernels)} of {len(kernels)} store {expected_sectors} sectors")


def _select_heaviest(kernels: list[KernelMetrics]) -> tuple[list[KernelMetrics], Step]:
    question = "kernel with the most work"
    if len(kernels) < 2:
        return kernels, Step(question, "one kernel left" if kernels else "no kernel left")
    measures: tuple[tuple[str, Callable[[KernelMetrics], float | None]], ...] = (
        ("tensor work", lambda kernel: kernel.tensor_work if kernel.uses_tensor_cores else None),
        ("time", lambda kernel: kernel.share),
    )
    for name, measure in measures:
        values = [measure(kernel) or 0.0 for kernel in kernels]
        largest, next_largest = sorted(values, reverse=True)[:2]
        if not largest:
            continue
        shares = f"{largest / sum(values):.0%} of the {name}, the next kernel has {next_largest / sum(values):.0%}"
        if largest < _MIN_LEAD * next_largest:
            return kernels, Step(question, f"no clear winner: the first kernel has {shares}")
        return [kernels[values.index(largest)]], Step(question, f"one kernel has {shares}")
    return kernels, Step(question, "neither tensor work nor time is known")


def data_type(kernel: KernelMetrics) -> DataType | None:
    """The type that most of a kernel's operations are in; None where neither instructions nor name tell.

    Tensor operations go first: where there are any they are the bulk, and plain arithmetic only helps.
    """
    tensor_counts = {kind: count for kind, count in kernel.tensor_types.items() if count}
    if tensor_counts:
        return DataType(max(tensor_counts, key=tensor_counts.__getitem__), "tensor core operations")
    if kernel.uses_tensor_cores and kernel.matrix_types:
        name = max(kernel.matrix_types, key=kernel.matrix_types.__getitem__)
        total = sum(kernel.matrix_types.values())
        return DataType(name, f"{kernel.matrix_types[name]:.0f} of {total:.0f} matrix instructions in its code")
    name_type = _type_in_name(kernel.shape.kernel)
    if kernel.uses_tensor_cores:
        return (
            DataType(name_type, "the kernel's name contains the type; the kernel uses tensor cores")
            if name_type
            else None
        )
    arithmetic_counts = {kind: count for kind, count in kernel.arithmetic.items() if count}
    if arithmetic_counts:
        name = max(arithmetic_counts, key=arithmetic_counts.__getitem__)
        return DataType(
            name, f"{arithmetic_counts[name] / sum(arithmetic_counts.values()):.0%} of its arithmetic instructions"
        )
    return DataType(name_type, "the kernel's name contains the type") if name_type else None


def _type_in_name(kernel: str) -> str | None:
    """A type that the name of the kernel tells, as ``ampere_bf16_s16816gemm`` or ``…<…, cutlass::half_t>``."""
    return next((name for name, pattern in _TYPE_PATTERNS if pattern.search(kernel)), None)


def bound_of(kernel: KernelMetrics) -> Bound | None:
    """Return what limits a kernel; None if the parts of the peak were not measured."""
    if kernel.compute is None or kernel.memory is None:
        return None
    if max(kernel.compute, kernel.memory) < _MIN_BOUND_PERCENT:
        return "neither"
    return "compute" if kernel.compute > kernel.memory else "memory"


def operations_per_byte(kernel: KernelMetrics) -> float | None:
    """Tensor operations / bytes that loads and stores asked for, both as counted by probes."""
    if kernel.tensor_operations is None or not kernel.requested_bytes:
        return None
    return kernel.tensor_operations / kernel.requested_bytes
