"""What limits a kernel: how busy each unit must have been, and which one that leaves.

For each unit, the share of the launch's time that it needs at least (of memory: at most) for what was counted::

    tensor     operations in half precision that take as long / the most a second / time
    fp32       warp instructions on fp32 / the most a second / time         likewise fp64, fp16
    issue      warp instructions, without those that the assembler drops / the most a second / time
    L1         passes: the larger of requests, and sectors / 4 + requests to shared memory / the most a second / time
    memory     32 · sectors (else the bytes asked for) / bytes per second of the memory / time

L1 has a share only where requests to shared memory were counted: of many a kernel they are most of its passes.

Caches answer part of what is asked of memory, so that share is an upper bound, and may exceed 1. It is one of DRAM only
where the memory that the launch touches (``footprint``) does not fit into the L2 cache and is not asked for again, or
where Nsight Compute counted the bytes; of L2 where it fits. Otherwise it is said without a level.

No unit is busy for longer than the launch took: a share above 1 that caches do not explain tells that more was counted
than was executed, as PTX may be, of which the assembler leaves out and merges some. So it is not certain either.

The verdict is the unit with the largest share if that is 60 % or more, as Nsight Compute's guide reads its Speed Of
Light. Memory behind caches, whose share may be far too large, comes after all others, so it is the verdict only where
all others were counted. Below 60 % no unit limits: the launch is so short that launching is what it takes (5 µs), it
has too few blocks for the SMs, or latency is what its warps wait for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from tui_probe.analysis.machine import Machine

Limit = Literal["memory", "tensor", "fp32", "fp64", "fp16", "issue", "latency", "too small", "launch"]
Level = Literal["", "DRAM", "L2", "L1"]

BUSY: Final = 0.6
"""The share of the time from which on a unit limits."""
LAUNCH_SECONDS: Final = 5e-6
"""What hardly any launch falls below, whatever it does: twice what an empty kernel takes."""
_SECTOR: Final = 32
_AGAIN: Final = 1.2
"""Bytes asked for, in parts of those touched, up to which hardly any is asked for again."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a launch asked for, means over launches; None where it was not measured.

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
class Share:
    """The part of the time for which a unit was busy; ``certain`` if it cannot have been less. ``behind_caches``: they
    answered an unknown part of what was asked for.
    """

    unit: Limit
    share: float
    level: Level = ""
    certain: bool = True
    behind_caches: bool = False

    @property
    def name(self) -> str:
        """``memory (L2)``."""
        return f"{self.unit} ({self.level})" if self.level else self.unit


@dataclass(frozen=True, slots=True)
class Verdict:
    """What limits; None where that cannot be told. ``shares`` are of all units known, the largest first.

    ``unknown`` are what was not measured and could change the answer.
    """

    limit: Limit | None
    level: Level
    share: float | None
    shares: tuple[Share, ...]
    unknown: tuple[str, ...]
    seconds: float | None
    blocks: int | None
    sms: int


def verdict(demand: Demand, machine: Machine) -> Verdict:
    """What limits a kernel on a machine."""
    shares = () if not demand.seconds or machine.simulated else _ranked(demand, machine, demand.seconds)
    unknown = _unknown(demand, machine)
    limit, level, share = _limit(demand, machine, shares, unknown)
    return Verdict(limit, level, share, shares, unknown, demand.seconds, demand.blocks, machine.sms)


def _limit(
    demand: Demand, machine: Machine, shares: tuple[Share, ...], unknown: tuple[str, ...]
) -> tuple[Limit | None, Level, float | None]:
    if not demand.seconds or not shares:
        return None, "", None
    busy = [each for each in shares if each.share >= BUSY]
    found = next((each for each in busy if not each.behind_caches), None) or next(iter(busy), None)
    if found is not None:
        told = not (found.behind_caches and unknown)
        return (found.unit, found.level, found.share) if told else (None, "", found.share)
    largest = shares[0].share
    if demand.seconds <= LAUNCH_SECONDS:
        return "launch", "", largest
    if demand.blocks is not None and demand.blocks < machine.sms:
        return "too small", "", largest
    return (None if unknown else "latency"), "", largest


def demanded(demand: Demand, machine: Machine) -> tuple[Share, ...]:
    """What each unit needs in parts of what the neediest needs: what could limit, where no time was measured."""
    units = _ranked(demand, machine, 1.0)
    most = units[0].share if units else 0.0
    return tuple(replace(each, share=each.share / most) for each in units) if most else ()


def _ranked(demand: Demand, machine: Machine, seconds: float) -> tuple[Share, ...]:
    found = [each for each in (*_compute(demand, machine, seconds), *_memory(demand, machine, seconds)) if each.share]
    possible = (replace(each, certain=each.certain and each.share <= 1) for each in found)
    return tuple(sorted(possible, key=lambda each: -each.share))


def _compute(demand: Demand, machine: Machine, seconds: float) -> list[Share]:
    tensor = machine.tensor if demand.wgmma else machine.mma
    amounts: tuple[tuple[Limit, float | None, float | None], ...] = (
        ("tensor", demand.tensor, tensor),
        ("fp32", demand.fp32, machine.fp32),
        ("fp64", demand.fp64, machine.fp64),
        ("fp16", demand.fp16, machine.fp16),
        ("issue", demand.instructions, machine.issue),
    )
    return [Share(unit, amount / rate / seconds) for unit, amount, rate in amounts if amount and rate]


def _memory(demand: Demand, machine: Machine, seconds: float) -> list[Share]:
    found = []
    if (passes := _passes(demand)) and machine.requests:
        found.append(Share("memory", passes / machine.requests / seconds, "L1"))
    if demand.dram is not None and machine.memory:
        found.append(Share("memory", demand.dram / machine.memory / seconds, "DRAM"))
    if demand.l2 is not None and machine.l2:
        found.append(Share("memory", demand.l2 / machine.l2 / seconds, "L2"))
    return found if demand.dram is not None else [*found, *_behind_caches(demand, machine, seconds)]


def _passes(demand: Demand) -> float | None:
    """Passes of L1 and shared memory, at the least; None where those of shared memory were not counted."""
    if demand.shared is None:
        return None
    return max(demand.shared + (demand.sectors or 0.0) / 4, demand.memory or 0.0)


def _behind_caches(demand: Demand, machine: Machine, seconds: float) -> list[Share]:
    """What memory would have to carry without caches, on the level that the footprint tells."""
    asked = traffic(demand)
    if not asked:
        return []
    if fits(demand, machine):
        return (
            [Share("memory", asked / machine.l2 / seconds, "L2", certain=False, behind_caches=True)]
            if machine.l2
            else []
        )
    if not machine.memory:
        return []
    if demand.footprint is not None and asked <= _AGAIN * demand.footprint:
        return [Share("memory", min(asked, demand.footprint) / machine.memory / seconds, "DRAM")]
    return [Share("memory", asked / machine.memory / seconds, certain=False, behind_caches=True)]


def traffic(demand: Demand) -> float | None:
    """Bytes that the caches are asked for: those of sectors, else those that instructions name."""
    return demand.size if demand.sectors is None else _SECTOR * demand.sectors


def fits(demand: Demand, machine: Machine) -> bool:
    """Whether all that the launch can touch fits into half of the L2 cache, so that it may be there."""
    touched = [each for each in (demand.footprint, demand.reach) if each is not None]
    return bool(touched) and machine.l2_size is not None and min(touched) <= machine.l2_size / 2


def _unknown(demand: Demand, machine: Machine) -> tuple[str, ...]:
    """What was not measured, in the words of the page; what the machine has no rate for cannot be told at all."""
    lacking = [
        ("time", demand.seconds is None or machine.simulated),
        ("sectors", demand.sectors is None and demand.dram is None),
        ("requests to shared memory", demand.shared is None),
        ("tensor operations", demand.tensor is None),
        ("fp32, fp64 and fp16 instructions", None in (demand.fp32, demand.fp64, demand.fp16)),
        ("instructions", demand.instructions is None),
        ("bandwidth", machine.memory is None and not machine.simulated),
    ]
    return tuple(words for words, missing in lacking if missing)
