"""Demand of a launch on memory, tensor cores, arithmetic and issue slots, counted together.

With the sums over all warps::

    sectors            = those of loads, stores and atomics of global memory
    shared requests    = shared_passes / 32              at least as many passes of shared memory
    tensor operations  = 2 · multiply-adds of all types
    as half            = 2 · (half + 2 · tf32 + byte / 2 + 16 · double)

``as half`` is the number of operations in half precision that take tensor cores as long: they multiply numbers of
tf32 half as fast as those of 16 bits, of 8 bits twice as fast, and doubles at a 16th (NVIDIA's white papers of A100
and H100).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, Gain, counted
from tui_probe.probekit.metric import BYTES_READ, BYTES_WRITTEN, Metric, show_nonzero
from tui_probe.probekit.probe import Probe, Question, analysis_of_result
from tui_probe.records.counter_sums import sum_records
from tui_probe.trace.launch_shape import SECTOR_BYTES, WARP_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tui_probe.probekit.metric import Better, Quantity
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.trace.results import Result


_COUNTS: Final = (
    "loaded", "stored", "load_requests", "load_sectors", "store_requests", "store_sectors", "load_ideal",
    "store_ideal", "atomic_requests",
    "atomic_sectors", "unsized", "shared_passes", "tensor_half", "tensor_tf32", "tensor_byte", "tensor_double", "wgmma",
    "fp32_operations", "fp64_operations", "half_operations", "fp32_instructions", "fp64_instructions",
    "half_instructions", "memory_instructions", "instructions",
)  # fmt: skip
RECORD: Final = np.dtype(
    {
        "names": [*_COUNTS, "threads"],
        "formats": ["<u8"] * len(_COUNTS) + ["<u4"],
        "offsets": [8 * place for place in range(len(_COUNTS) + 1)],
        "itemsize": 8 * (len(_COUNTS) + 1),
    }
)
"""Record of the probe per warp: sums over its lanes."""
_WARPGROUP_THREADS: Final = 128
"""Threads that execute a ``wgmma`` together."""
_FLAGGED_SHARE: Final = 0.1
"""The part of all sectors from which on what is wasted stands out."""


@dataclass(frozen=True, slots=True)
class UnitDemand:
    """Sums of one launch, by the names of ``probe.toml``."""

    sums: dict[str, int]
    threads_missing: int

    @property
    def read(self) -> int | None:
        """Bytes read from global memory; None where sizes of copies by tensor map are unknown."""
        return None if self.sums["unsized"] else self.sums["loaded"]

    @property
    def written(self) -> int | None:
        """Bytes written to global memory, likewise."""
        return None if self.sums["unsized"] else self.sums["stored"]

    @property
    def sectors(self) -> int | None:
        """Sectors of global memory, likewise."""
        kinds = ("load_sectors", "store_sectors", "atomic_sectors")
        return None if self.sums["unsized"] else sum(self.sums[kind] for kind in kinds)

    @property
    def shared_requests(self) -> int:
        """Requests to shared memory, those of several matrices counted for each."""
        return self.sums["shared_passes"] // WARP_SIZE

    @property
    def wgmma(self) -> int:
        """Matrix instructions of four warps."""
        return self.sums["wgmma"] // _WARPGROUP_THREADS

    @property
    def tensor_operations(self) -> int:
        """Operations of matrix instructions."""
        return 2 * sum(self.sums[f"tensor_{kind}"] for kind in ("half", "tf32", "byte", "double"))

    @property
    def tensor_as_half(self) -> float:
        """Operations in half precision that take as long."""
        relative_times = {"half": 1.0, "tf32": 2.0, "byte": 0.5, "double": 16.0}
        return 2 * sum(times * self.sums[f"tensor_{kind}"] for kind, times in relative_times.items())


def analyse(result: Result) -> UnitDemand:
    """Sum the records of one launch. Raises TraceError if map 0 holds no records of ``what_limits``."""
    sums = sum_records(result, RECORD, "what_limits")
    return UnitDemand(sums.totals, sums.threads_missing)


def _sum_metric(
    name: str,
    title: str,
    quantity: Quantity = "",
    better: Better = "neither",
    ideal: Callable[[UnitDemand], int] | None = None,
) -> Metric:
    """A sum over all warps, which grows with the work."""
    return Metric(
        name, title, better=better, quantity=quantity, read=_sum_reader(name), is_shown=show_nonzero, ideal=ideal,
        standalone_title=title,
        of_work=better != "neither",
    )  # fmt: skip


def _sum_reader(name: str) -> Callable[[UnitDemand], int]:
    return lambda analysis: analysis.sums[name]


METRICS: Final = (
    BYTES_READ,
    BYTES_WRITTEN,
    Metric(
        "sectors",
        "sectors",
        better="lower",
        quantity="sectors",
        of_work=True,
        standalone_title="sectors of loads, stores and atomics",
    ),
    _sum_metric("load_requests", "load requests", better="lower"),
    _sum_metric("load_sectors", "load sectors", better="lower", ideal=_sum_reader("load_ideal")),
    _sum_metric("store_requests", "store requests", better="lower"),
    _sum_metric("store_sectors", "store sectors", better="lower", ideal=_sum_reader("store_ideal")),
    _sum_metric("atomic_requests", "atomic requests", better="lower"),
    _sum_metric("atomic_sectors", "atomic sectors", better="lower"),
    Metric(
        "shared_requests",
        "shared requests",
        better="lower",
        quantity="shared requests",
        is_shown=show_nonzero,
        of_work=True,
        standalone_title="requests to shared memory",
    ),
    Metric("tensor_operations", "tensor operations", quantity="tensor operations", is_shown=show_nonzero),
    Metric(
        "tensor_as_half",
        "FP16-equivalent tensor operations",
        quantity="tensor operations as half",
        standalone_title="FP16-equivalent tensor operations",
        is_shown=show_nonzero,
    ),
    Metric("wgmma", "wgmma", quantity="wgmma instructions", is_shown=show_nonzero),
    _sum_metric("fp32_operations", "fp32 operations", "fp32 operations"),
    _sum_metric("fp64_operations", "fp64 operations", "fp64 operations"),
    _sum_metric("half_operations", "fp16 operations", "fp16 operations"),
    _sum_metric("fp32_instructions", "fp32 instructions", "fp32 instructions"),
    _sum_metric("fp64_instructions", "fp64 instructions", "fp64 instructions"),
    _sum_metric("half_instructions", "fp16 instructions", "half instructions"),
    _sum_metric("memory_instructions", "memory instructions", "memory instructions"),
    _sum_metric("instructions", "issued instructions", "instructions", "lower"),
    Metric(
        "unsized",
        "tensor-map copies of unknown size",
        read=_sum_reader("unsized"),
        is_shown=show_nonzero,
        standalone_title="tensor-map copies of unknown size",
    ),
)


def findings(probe_result: ProbeResult, analysis: UnitDemand) -> Iterator[Finding]:
    """Memory, then arithmetic."""
    del probe_result
    yield from _memory_findings(analysis)
    yield from _arithmetic_findings(analysis)


def _memory_findings(analysis: UnitDemand) -> Iterator[Finding]:
    bytes_read, bytes_written, sectors = analysis.read, analysis.written, analysis.sectors
    values = {"read": counted(bytes_read, "B"), "written": counted(bytes_written, "B"), "sectors": counted(sectors)}
    text = f"{units.size(bytes_read)} read, {units.size(bytes_written)} written (requested)"
    if bytes_read is None or bytes_written is None or sectors is None:
        yield Finding("asked", "memory", f"{text}; the sizes of some tensor-map copies are unknown", values=values)
        return
    sector_count = analysis.sums["load_sectors"] + analysis.sums["store_sectors"]
    excessive_bytes = SECTOR_BYTES * (sector_count - analysis.sums["load_ideal"] - analysis.sums["store_ideal"])
    text += f", in {units.counted(sectors, 'sector')} of 32 B"
    if sector_count and excessive_bytes > _FLAGGED_SHARE * sector_count * SECTOR_BYTES:
        text += ", more sectors than the bytes need"
        excess_values = {"wasted_bytes": counted(excessive_bytes, "B", 0), **values}
        gain = Gain(excessive_bytes, sector_count * SECTOR_BYTES, "B")
        yield Finding(
            "asked", "memory", text, stands_out=True, next_question="coalescing", values=excess_values, gain=gain
        )
    else:
        yield Finding("asked", "memory", text, values=values)


def _arithmetic_findings(analysis: UnitDemand) -> Iterator[Finding]:
    kinds = {"tensor": analysis.tensor_operations, "fp32": analysis.sums["fp32_operations"],
             "fp64": analysis.sums["fp64_operations"], "fp16": analysis.sums["half_operations"]}  # fmt: skip
    values = {name: counted(number) for name, number in kinds.items()}
    parts = [f"{units.count(number)} {name}" for name, number in kinds.items() if number]
    if not parts:
        yield Finding("operations", "operations", "no floating-point operation was executed", values=values)
        return
    text = f"{', '.join(parts)} operations"
    requested_bytes = None if analysis.read is None or analysis.written is None else analysis.read + analysis.written
    if requested_bytes:
        text += f", {sum(kinds.values()) / requested_bytes:.3g} per requested byte"
    yield Finding("operations", "operations", text, values=values)


PROBES: Final = (
    Probe(
        name="what_limits",
        analyse=analysis_of_result(analyse),
        metrics=METRICS,
        question=Question("limit", "what limits it: memory, compute or latency?", 5, search_words="roofline bound"),
        answers=("bytes", "mix"),
        findings=findings,
    ),
)
