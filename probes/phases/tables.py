"""Tables below the page: phases by role, overlap of loads with computation, and instructions moved between phases.

Moved instructions are those that ptxas moved across the boundaries of phases that the user named. Machine code of the
probed kernel is compared with its table of source lines: an instruction behind the clock read of one phase whose line
is of another one was moved, by ptxas or by the compiler before it. Counted are loads, stores, barriers, products and
floating-point arithmetic; the code of the probe itself has none of these but its own stores.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.binaries.cubin import Cubin
from tui_probe.errors import ImageError, ProbeFileError, UnsupportedKernelError
from tui_probe.input_limits import CUBIN, PROBE_FILE
from tui_probe.probe_files.loading import read_probe
from tui_probe.ptx.operands import MADE_UP
from tui_probe.ptx.phase_names import MARK, marked_phases
from tui_probe.ptx.tree import Immediate, Instruction
from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.operations import operation_class, operation_name
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.words import DESTINATION, IMMEDIATE, SOURCE_B, WORD_BYTES
from tui_probe.trace.plain_file import read_within

from .waits import main_site, place_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.probe_model.probe import Probe
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.sass.words import Word
    from tui_probe.trace.sites import Site

    from .analysis import Phases, Spans
    from .kinds import Phase

NOTABLY_SLOWER: Final = 1.5
"""Median time of a warp in a phase, over that of other warps of its role, from which on it is named."""
_NOTABLE_PHASE: Final = 0.02
"""Part of a role's time from which on slow warps of a phase are named."""
_MOST_SLOW: Final = 3
_UNKNOWN: Final = -1
_LANES: Final = 32
_COUNTED: Final = frozenset({"fp32", "fp64", "fp16", "bf16", "tensor", "load", "store", "atomic", "barrier"})
_CLOCK, _CLOCK_REGISTER = 0x005, (72, 8)
_CLOCK_LOW: Final = 0x50
_MOVES: Final = frozenset({"MOV", "IMAD", "HFMA2"})
"""Operations by which ptxas sets a register to a number."""
_NEAR: Final = 256
"""Instructions between a clock read and the store of its record at most."""


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """A phase of a role: cycles of all its warps, and their part of the time of the blocks. ``median`` and ``p95``
    are cycles per iteration in a recorded loop, elsewhere per warp; ``iterations`` is the number of these. If not all
    iterations are recorded, ``cycles`` and ``multiply_adds`` are estimates for all of them.
    """

    role: str
    phase: Phase
    warps: int
    cycles: int
    share: float
    iterations: int
    median: float
    p95: float
    multiply_adds: int | None
    """Multiply-adds of matrix products that its warps issue in the phase; None if they are unknown."""
    blocks: int
    site: Site
    """The start with most of its cycles."""
    part: str = ""
    """``warp 5`` or ``other warps`` for some warps of the role; "" for all."""
    parts: tuple[PhaseRow, ...] = ()
    """The rows of warps that take much longer than the others of the role, and the row of the others."""

    @property
    def name(self) -> str:
        """The name of the phase; of some warps, which these are."""
        return f"  {self.part}" if self.part else self.phase.name

    @property
    def place(self) -> str:
        """Source position at which most of its cycles begin; "" if unknown."""
        return place_of(self.site)

    def per_clock(self) -> float | None:
        """Multiply-adds of a block per cycle of the phase, which its warps are taken to be in at the same time."""
        if not self.multiply_adds or not self.cycles:
            return None
        return self.multiply_adds * self.warps / self.blocks / self.cycles


@lru_cache(maxsize=2)
def rows_of(launch: Phases) -> list[PhaseRow]:
    """The phases of each role, those with most time first."""
    rows = []
    products = np.array([_UNKNOWN if count is None else count for count in map(_products, launch.sites)], np.int64)
    block_cycles = np.array([launch.block_cycles[block] for block in launch.warps.block.tolist()], np.int64)
    for role, name in enumerate(launch.roles):
        of_role = launch.warps.role == role
        total, blocks = int(block_cycles[of_role].sum()), len(np.unique(launch.warps.block[of_role]))
        for number, phase in enumerate(launch.phases):
            places = launch.places(role, number)
            if not len(places):
                continue
            spans, weight = launch.spans.where(places), launch.weight[places]
            times, warp_of_time = _iteration_cycles(launch, spans, places)
            cycles, warps = round((spans.cycles * weight).sum()), int(np.count_nonzero(np.diff(spans.warp, prepend=-1)))
            median, p95 = (float(value) for value in np.percentile(times, (50, 95)))
            own_products = products[spans.site]
            issued = None if (own_products == _UNKNOWN).any() else round(_LANES * (own_products * weight).sum())
            share, longest = cycles / total, main_site(launch, spans)
            row = PhaseRow(name, phase, warps, cycles, share, len(times), median, p95, issued, blocks, longest)
            rows.append(replace(row, parts=tuple(_parts_of(row, times, launch.warps.warp[warp_of_time]))))
    order = {name: place for place, name in enumerate(launch.roles)}
    return sorted(rows, key=lambda row: (order[row.role], -row.cycles))


def _products(site: Site) -> int | None:
    return site.phase.products if site.phase else None


def multiply_adds(launch: Phases) -> int | None:
    """Multiply-adds of matrix products that the launch issued; None if some are unknown or not recorded."""
    counts = [row.multiply_adds for row in rows_of(launch)]
    if None in counts or launch.starts_kept < launch.starts_seen or launch.every:
        return None
    return sum(count for count in counts if count is not None)


def _iteration_cycles(
    launch: Phases, spans: Spans, places: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cycles of spans of one phase, by warp and iteration, and the warps."""
    key = spans.warp * (int(launch.iteration.max(initial=0)) + 1) + launch.iteration[places]
    order = np.argsort(key, kind="stable")
    begins = np.flatnonzero(np.diff(key[order], prepend=-1))
    return np.add.reduceat(spans.cycles[order], begins), spans.warp[order][begins]


def _parts_of(row: PhaseRow, times: NDArray[np.int64], warp: NDArray[np.int64]) -> Iterator[PhaseRow]:
    """The warps that take much longer for a phase of a loop than the others of the role, a row each, and the others.

    ``warp`` is the number in its block of the warp of each of ``times``.
    """
    if row.phase.loop is None or row.phase.activity == "wait" or row.share < _NOTABLE_PHASE:
        return
    numbers = np.unique(warp).tolist()
    medians = {number: float(np.median(times[warp == number])) for number in numbers}
    limit = NOTABLY_SLOWER * float(np.median(list(medians.values())))
    slow = [number for number in numbers if medians[number] > limit][:_MOST_SLOW]
    if not slow:
        return
    for name, chosen in (
        *((f"warp {number}", warp == number) for number in slow), ("other warps", ~np.isin(warp, slow)),
    ):  # fmt: skip
        part_times = times[chosen]
        cycles = round(row.cycles * float(part_times.sum()) / float(times.sum()))
        warps = round(row.warps * len(np.unique(warp[chosen])) / len(numbers))
        median, p95 = (float(value) for value in np.percentile(part_times, (50, 95)))
        yield replace(
            row, part=name, warps=warps, cycles=cycles, share=row.share * cycles / row.cycles,
            iterations=len(part_times), median=median, p95=p95, multiply_adds=None,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Overlap:
    """Parts of the time of blocks in which some warp computes, some warp issues or does loads, and both."""

    compute: float
    load: float
    both: float
    idle: float
    """No warp computes, loads or stores: all wait, or do what no phase names."""

    @property
    def parts(self) -> tuple[float, float, float, float]:
        """All of them, in this order."""
        return self.compute, self.load, self.both, self.idle


@lru_cache(maxsize=2)
def overlap_of(launch: Phases) -> Overlap | None:
    """The overlap in blocks of the launch; None if these took no time, the user named the phases, or not all iterations
    are recorded: roles that run ahead of others are in other iterations at the same time.
    """
    if launch.every or any(phase.is_named for phase in launch.phases):
        return None
    totals = np.zeros(5)
    for block in launch.some_blocks:
        totals += _block_times(launch, block)
    cycles, compute, load, both, idle = totals.tolist()
    return Overlap(compute / cycles, load / cycles, both / cycles, idle / cycles) if cycles else None


def _block_times(launch: Phases, block: int) -> NDArray[np.float64]:
    """Cycles of a block: all, with computation, with loads, with both, and with neither these nor stores."""
    spans = launch.spans.where(launch.of_block(block))
    spans = spans.where(spans.phase >= 0)
    activity = np.array([phase.activity for phase in launch.phases])[spans.phase]
    times = np.unique(np.concatenate((spans.start, spans.end, [0, launch.block_cycles[block]])))
    length = np.diff(times)
    active = {}
    for name in ("compute", "load", "store"):
        is_active = activity == name
        change = np.zeros(len(times), np.int64)
        np.add.at(change, np.searchsorted(times, spans.start[is_active]), 1)
        np.add.at(change, np.searchsorted(times, spans.end[is_active]), -1)
        active[name] = np.cumsum(change)[:-1] > 0
    compute, load = active["compute"], active["load"]
    none = ~(compute | load | active["store"])
    parts = (np.ones(len(length), bool), compute, load, compute & load, none)
    return np.array([float(length[part].sum()) for part in parts])


def moved_instructions(image: bytes, name: str, probe: Probe, works: Mapping[int, str]) -> Counter[str] | None:
    """Return how many instructions of other named phases each phase has in machine code, by name of the phase.

    ``works`` are the names of phases by the line that their records have. None if the code has no lines, or its clock
    reads cannot be distinguished.
    """
    # With the code that grafts, which a report of other probes needs not.
    from tui_probe.engine.grafting.sass_phases import flow_of, names_by_line

    try:
        target = GraftTarget.of(Cubin.read(image), name)
        names, graph = names_by_line(probe, target), FlowGraph.of(target)
    except (ImageError, UnsupportedKernelError):
        return None
    reads = _clock_reads(target.words, works)
    if {works[line] for line, _ in reads.values()} != set(works.values()):
        return None
    code = [_mark(reads[index][0]) if index in reads else _plain() for index in range(len(target.words))]
    current = marked_phases(flow_of(graph, code))
    assert current is not None
    stores = {store for _, store in reads.values()}
    moved: Counter[str] = Counter()
    for index, (word, instruction) in enumerate(zip(target.words, code, strict=True)):
        own, here = names(index * WORD_BYTES), (current(instruction) or "").removeprefix(f"{MARK} ")
        if own and here and index not in stores and operation_class(word, target.arch) in _COUNTED:
            moved[works[int(here)]] += own != works[int(here)]
    return moved


def moved_in_trace(of: ProbeResult, sites: Sequence[Site]) -> Counter[str] | None:
    """Return the moves of a kernel of a trace; None if a file is missing or damaged, or the user named no phases."""
    if not any(site.phase is not None and site.phase.named for site in sites):
        return None
    parts = ("probe.toml",) if of.kernel.probe is None else ("probes", f"{of.kernel.probe}.toml")
    binary, file = of.kernel.file("probed.bin"), of.kernel.trace.file(*parts)
    if binary is None or file is None:
        return None
    try:
        probe = read_probe(read_within(file, PROBE_FILE), file)
        image = read_within(binary, CUBIN)
    except (OSError, ProbeFileError):
        return None
    works = {site.instruction.line: site.phase.work for site in sites if site.phase is not None}
    return moved_instructions(image, of.kernel.name, probe, works)


def _clock_reads(words: Sequence[Word], works: Mapping[int, str]) -> dict[int, tuple[int, int]]:
    """The line of the record of each clock read, and the number of the instruction that stores it."""
    reads = {}
    for index, word in enumerate(words):
        if word.operation == _CLOCK and word.field(*_CLOCK_REGISTER) == _CLOCK_LOW:
            register = word.field(*DESTINATION)
            for at in range(index + 1, min(index + _NEAR, len(words))):
                if operation_name(words[at], 90) == "STG" and words[at].field(*SOURCE_B) == register:
                    line = _number_in(words, register + 1, at)
                    if line in works:
                        reads[index] = line, at
                    break
    return reads


def _number_in(words: Sequence[Word], register: int, before: int) -> int:
    """The number that a register was last set to; -1 if unknown."""
    for at in range(before - 1, max(before - _NEAR, -1), -1):
        if words[at].field(*DESTINATION) == register and operation_name(words[at], 90) in _MOVES:
            return words[at].field(*IMMEDIATE)
    return -1


def _mark(line: int) -> Instruction:
    return Instruction(MARK, (), (Immediate(str(line)),), MADE_UP)


def _plain() -> Instruction:
    return Instruction("mov", (), (), MADE_UP)
