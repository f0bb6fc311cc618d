"""Utilization of each GPU unit from counted demand and peak rates, and the limiter that it implies.

Rates of an SM are from the table of arithmetic throughput in NVIDIA's CUDA programming guide (warp instructions a
clock: its results a clock / 32) and the white papers of Volta, Turing, Ampere, Hopper; rates of memory are those of
the data sheets, which a measurement (``tui-probe bandwidth``) replaces. What no source states is None: no share is
made of it.

For each unit, the utilization is the share of the launch's time that it needs at least (of memory: at most) for what
was counted::

    tensor     operations in half precision that take as long / peak rate / time
    fp32       warp instructions on fp32 / peak rate / time         likewise fp64, fp16
    issue      warp instructions, without those that the assembler drops / peak rate / time
    L1         passes: the larger of requests, and sectors / 4 + requests to shared memory / peak rate / time
    memory     32 · sectors (else the bytes asked for) / bytes per second of the memory / time

L1 has a share only where requests to shared memory were counted: of many a kernel they are most of its passes.

Caches answer part of what is asked of memory, so that share is an upper bound, and may exceed 1. It is one of DRAM only
where the memory that the launch touches (``footprint``) does not fit into the L2 cache and is not asked for again, or
where Nsight Compute counted the bytes; of L2 where it fits. Otherwise it is said without a level.

No unit is busy for longer than the launch took: a share above 1 that caches do not explain shows that more was counted
than was executed, as in PTX, of which the assembler leaves out and merges some. So it is not certain either.

The limiter is the unit with the largest share if that is 60 % or more, as Nsight Compute's guide reads its Speed Of
Light. Memory behind caches, whose share may be far too large, comes after all others, so it limits only where all
others were counted. Below 60 % no unit limits: the launch is so short that launching is what it takes (5 µs), it has
too few blocks for the SMs, or latency is what its warps wait for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.probekit.probe_results import TENSOR_HALF
from tui_probe.trace.launch_shape import SECTOR_BYTES

if TYPE_CHECKING:
    from tui_probe.bandwidth.rates import Bandwidth
    from tui_probe.trace.event_types import Device

ISSUED_A_CLOCK: Final = 4.0
"""Warp instructions that the four schedulers of an SM issue."""
REQUESTS_A_CLOCK: Final = 1.0
"""Requests that the load and store units of an SM take, and passes of its shared memory."""
_SHARE_OF_MMA: Final = {"9.0": 0.63}
"""Share of the peak that instructions of one warp reach (mma.sync), where only those of four warps (wgmma) reach
all: Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture (2024), table of tensor core
throughput.
"""
_FP32: Final = {"7.0": 2, "7.5": 2, "8.0": 2, "8.6": 4, "8.7": 4, "8.9": 4, "9.0": 4, "10.0": 4, "12.0": 4}
_FP64: Final = {"7.0": 1, "7.5": 1 / 16, "8.0": 1, "8.6": 1 / 16, "8.7": 1 / 16, "8.9": 1 / 16, "9.0": 2, "10.0": 2,
                "12.0": 1 / 16}  # fmt: skip
"""Warp instructions on fp32 and on fp64 that an SM completes in a clock, by compute capability."""
_HALF: Final = {"7.0": 2, "7.5": 2, "8.0": 4, "8.6": 2, "8.7": 2, "8.9": 2, "9.0": 2, "10.0": 4, "12.0": 2}
"""Warp instructions on half2 that an SM completes in a clock. For 9.0 it is not the guide's 4: on an H200 a kernel of
nothing but HFMA2 issued 1.96 of them a clock and SM with its pipe busy for 99 % of the time by Nsight Compute: 16 lanes
a scheduler.
"""
_MEMORIES: Final = (
    ("H200", 4.8e12, 60 << 20), ("H100 PCIe", 2.0e12, 50 << 20), ("H100 NVL", 3.9e12, 50 << 20),
    ("H100", 3.35e12, 50 << 20), ("A100-SXM4-80GB", 2.039e12, 40 << 20), ("A100 80GB", 1.935e12, 40 << 20),
    ("A100", 1.555e12, 40 << 20), ("V100", 0.9e12, 6 << 20), ("L40S", 0.864e12, 96 << 20), ("L40", 0.864e12, 96 << 20),
    ("L4", 0.3e12, 48 << 20), ("A10", 0.6e12, 6 << 20), ("T4", 0.32e12, 4 << 20), ("RTX 4090", 1.008e12, 72 << 20),
    ("RTX 3090", 0.936e12, 6 << 20),
)  # fmt: skip
"""Bytes per second and bytes of L2 cache by a part of the name, the longer names first."""
_L2: Final = {"H200": 7.4e12}
"""Bytes per second of the L2 cache, as ``tui-probe bandwidth`` measured them; no data sheet states any."""
_SIMULATED_BYTES_PER_SM: Final = 1.555e12 / 108
"""Bytes per second of memory for each SM of a simulated GPU: as of an A100, which it is like."""
Limiter = Literal["memory", "tensor", "fp32", "fp64", "fp16", "issue", "latency", "too small", "launch"]
MemoryLevel = Literal["", "DRAM", "L2", "L1"]
LIMITING_UTILIZATION: Final = 0.6
"""The share of the time from which on a unit limits."""
LAUNCH_OVERHEAD_SECONDS: Final = 5e-6
"""Time that hardly any launch falls below, no matter what it does: twice that of an empty kernel."""
_REUSE_TOLERANCE: Final = 1.2
"""Bytes asked for, in parts of those touched, up to which hardly any is asked for again."""


@dataclass(frozen=True, slots=True)
class PeakRates:
    """The most of each a second, of the whole GPU at its highest clock; None where it is not known."""

    name: str
    sms: int
    issue: float | None = None
    """Warp instructions."""
    fp32: float | None = None
    fp64: float | None = None
    fp16: float | None = None
    requests: float | None = None
    tensor: float | None = None
    """Operations in half precision, of all instructions; ``mma`` of those of one warp."""
    mma: float | None = None
    memory: float | None = None
    """Bytes of device memory."""
    l2: float | None = None
    """Bytes of the L2 cache."""
    l2_size: int | None = None
    simulated: bool = False


def peak_rates(device: Device, bandwidth: Bandwidth | None = None, *, simulated: bool = False) -> PeakRates:
    """Rates of a device; of its memories the measured ones, else by its name. A simulated one has no time."""
    clocks = float(device.sms) * device.clock_khz * 1e3 or None
    kind = device.capability

    def rate(a_clock: float | None) -> float | None:
        return None if clocks is None or a_clock is None else a_clock * clocks

    memory, l2_size = (_SIMULATED_BYTES_PER_SM * device.sms, None) if simulated else _memory_of(device.name)
    tensor = rate(TENSOR_HALF.get(kind))
    mma = None if tensor is None else tensor * _SHARE_OF_MMA.get(kind, 1.0)
    machine = PeakRates(
        device.name, device.sms, rate(ISSUED_A_CLOCK), rate(_FP32.get(kind)), rate(_FP64.get(kind)),
        rate(_HALF.get(kind)), rate(REQUESTS_A_CLOCK), tensor, mma, memory,
        next((bytes_ for part, bytes_ in _L2.items() if part in device.name), None), l2_size, simulated,
    )  # fmt: skip
    return machine if bandwidth is None else _with_measured_rates(machine, bandwidth)


def _memory_of(name: str) -> tuple[float | None, int | None]:
    return next(((rate, size) for part, rate, size in _MEMORIES if part in name), (None, None))


def _with_measured_rates(machine: PeakRates, bandwidth: Bandwidth) -> PeakRates:
    memory, l2 = bandwidth.rate("memory_read"), bandwidth.rate("l2_read")
    return replace(
        machine,
        memory=machine.memory if memory is None else memory.bytes_per_second,
        l2=machine.l2 if l2 is None else l2.bytes_per_second,
        l2_size=machine.l2_size if bandwidth.card is None else bandwidth.card.l2_bytes or machine.l2_size,
    )


@dataclass(frozen=True, slots=True)
class Demand:
    """Requests of a launch, means over launches; None where it was not measured.

    ``seconds`` are those of the kernel without a probe. ``footprint`` are the distinct bytes of global memory that it
    touched, ``reach`` the bytes of all allocations that its parameters point to. ``dram`` and ``l2`` are bytes that
    hardware counters saw.
    """

    seconds: float | None = None
    blocks: int | None = None
    size: float | None = None
    """Bytes asked of global memory."""
    sectors: float | None = None
    shared: float | None = None
    """Requests to shared memory."""
    memory: float | None = None
    """Warp instructions that access memory."""
    instructions: float | None = None
    fp32: float | None = None
    fp64: float | None = None
    fp16: float | None = None
    tensor: float | None = None
    """Operations in half precision that take as long."""
    wgmma: float | None = None
    footprint: float | None = None
    reach: float | None = None
    dram: float | None = None
    l2: float | None = None


@dataclass(frozen=True, slots=True)
class UnitUtilization:
    """The part of the time in which a unit was busy; ``is_certain`` if it cannot have been less. ``behind_caches``:
    they answered an unknown part of what was asked for.
    """

    unit: Limiter
    share: float
    level: MemoryLevel = ""
    is_certain: bool = True
    behind_caches: bool = False

    @property
    def name(self) -> str:
        """``memory (L2)``."""
        return f"{self.unit} ({self.level})" if self.level else self.unit


@dataclass(frozen=True, slots=True)
class LimiterVerdict:
    """Limiter; None where it is not known. ``shares`` are of all units known, the largest first.

    ``unknown`` are what was not measured and could change the answer.
    """

    limit: Limiter | None
    level: MemoryLevel
    share: float | None
    shares: tuple[UnitUtilization, ...]
    unknown: tuple[str, ...]
    seconds: float | None
    blocks: int | None
    sms: int


def limiter_verdict(demand: Demand, machine: PeakRates) -> LimiterVerdict:
    """Return the limiter of a kernel on a machine."""
    shares = () if not demand.seconds or machine.simulated else _ranked_utilization(demand, machine, demand.seconds)
    unknown = _unmeasured(demand, machine)
    limit, level, share = _limiter(demand, machine, shares, unknown)
    return LimiterVerdict(limit, level, share, shares, unknown, demand.seconds, demand.blocks, machine.sms)


def _limiter(
    demand: Demand, machine: PeakRates, shares: tuple[UnitUtilization, ...], unknown: tuple[str, ...]
) -> tuple[Limiter | None, MemoryLevel, float | None]:
    if not demand.seconds or not shares:
        return None, "", None
    busy_units = [share for share in shares if share.share >= LIMITING_UTILIZATION]
    busiest = next((unit for unit in busy_units if not unit.behind_caches), None) or next(iter(busy_units), None)
    if busiest is not None:
        is_known = not (busiest.behind_caches and unknown)
        return (busiest.unit, busiest.level, busiest.share) if is_known else (None, "", busiest.share)
    largest_share = shares[0].share
    if demand.seconds <= LAUNCH_OVERHEAD_SECONDS:
        return "launch", "", largest_share
    if demand.blocks is not None and demand.blocks < machine.sms:
        return "too small", "", largest_share
    return (None if unknown else "latency"), "", largest_share


def relative_demand(demand: Demand, machine: PeakRates) -> tuple[UnitUtilization, ...]:
    """Return the need of each unit relative to the largest: possible limiters, where no time was measured."""
    units = _ranked_utilization(demand, machine, 1.0)
    largest_share = units[0].share if units else 0.0
    return tuple(replace(unit, share=unit.share / largest_share) for unit in units) if largest_share else ()


def _ranked_utilization(demand: Demand, machine: PeakRates, seconds: float) -> tuple[UnitUtilization, ...]:
    units = [
        unit
        for unit in (*_compute_utilization(demand, machine, seconds), *_memory_utilization(demand, machine, seconds))
        if unit.share
    ]
    bounded_units = (replace(unit, is_certain=unit.is_certain and unit.share <= 1) for unit in units)
    return tuple(sorted(bounded_units, key=lambda utilization: -utilization.share))


def _compute_utilization(demand: Demand, machine: PeakRates, seconds: float) -> list[UnitUtilization]:
    tensor = machine.tensor if demand.wgmma else machine.mma
    amounts: tuple[tuple[Limiter, float | None, float | None], ...] = (
        ("tensor", demand.tensor, tensor),
        ("fp32", demand.fp32, machine.fp32),
        ("fp64", demand.fp64, machine.fp64),
        ("fp16", demand.fp16, machine.fp16),
        ("issue", demand.instructions, machine.issue),
    )
    return [UnitUtilization(unit, amount / rate / seconds) for unit, amount, rate in amounts if amount and rate]


def _memory_utilization(demand: Demand, machine: PeakRates, seconds: float) -> list[UnitUtilization]:
    units = []
    if (passes := _wavefronts(demand)) and machine.requests:
        units.append(UnitUtilization("memory", passes / machine.requests / seconds, "L1"))
    if demand.dram is not None and machine.memory:
        units.append(UnitUtilization("memory", demand.dram / machine.memory / seconds, "DRAM"))
    if demand.l2 is not None and machine.l2:
        units.append(UnitUtilization("memory", demand.l2 / machine.l2 / seconds, "L2"))
    return units if demand.dram is not None else [*units, *_utilization_without_caches(demand, machine, seconds)]


def _wavefronts(demand: Demand) -> float | None:
    """Passes of L1 and shared memory, at the least; None where those of shared memory were not counted."""
    if demand.shared is None:
        return None
    return max(demand.shared + (demand.sectors or 0.0) / 4, demand.memory or 0.0)


def _utilization_without_caches(demand: Demand, machine: PeakRates, seconds: float) -> list[UnitUtilization]:
    """Return the bytes that memory would carry without caches, on the level that the footprint tells."""
    requested = requested_bytes(demand)
    if not requested:
        return []
    if fits_in_l2(demand, machine):
        return (
            [UnitUtilization("memory", requested / machine.l2 / seconds, "L2", is_certain=False, behind_caches=True)]
            if machine.l2
            else []
        )
    if not machine.memory:
        return []
    if demand.footprint is not None and requested <= _REUSE_TOLERANCE * demand.footprint:
        return [UnitUtilization("memory", min(requested, demand.footprint) / machine.memory / seconds, "DRAM")]
    return [UnitUtilization("memory", requested / machine.memory / seconds, is_certain=False, behind_caches=True)]


def requested_bytes(demand: Demand) -> float | None:
    """Bytes that the caches are asked for: those of sectors, else those that instructions name."""
    return demand.size if demand.sectors is None else SECTOR_BYTES * demand.sectors


def fits_in_l2(demand: Demand, machine: PeakRates) -> bool:
    """Return whether all memory that the launch can touch fits into half of the L2 cache, so that it may be there."""
    touched = [size for size in (demand.footprint, demand.reach) if size is not None]
    return bool(touched) and machine.l2_size is not None and min(touched) <= machine.l2_size / 2


def _unmeasured(demand: Demand, machine: PeakRates) -> tuple[str, ...]:
    """Return the missing measures, in the words of the page; a unit without a known rate has no remedy."""
    lacking = [
        ("time", demand.seconds is None or machine.simulated),
        ("sectors", demand.sectors is None and demand.dram is None),
        ("requests to shared memory", demand.shared is None),
        ("tensor operations", demand.tensor is None),
        ("fp32, fp64 and fp16 operations", None in (demand.fp32, demand.fp64, demand.fp16)),
        ("issued instructions", demand.instructions is None),
        ("bandwidth", machine.memory is None and not machine.simulated),
    ]
    return tuple(text for text, is_missing in lacking if is_missing)


def uncounted(verdict: LimiterVerdict) -> set[str]:
    """Return the metrics that no probe counted."""
    return set(verdict.unknown) - {"time", "bandwidth"}


def first_known(*values: float | None) -> float | None:
    """Return the first value that is known; None if none is."""
    return next((value for value in values if value is not None), None)
