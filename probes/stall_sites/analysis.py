"""Analysis of stalls: where warps wait in SASS, how long, and for which earlier instruction.

    waited      sum over warps and executions of (clock behind the wait - clock before it)      SM clock cycles
    passes      how often warps came to the instruction
    longest     longest wait of all, with its null wait
    null waits  cycles between the clocks without a wait · passes: 2 of most instructions, about 37 of BAR and MEMBAR
    life        sum over warps of (clock at the last exit - clock at the entry)
    measured    waited - null waits
    cycles      measured + min(measured, 48 · passes): the branch to the probe's code hides up to 48 cycles of each
                wait. As many are added, but no more than were measured, since a wait may also be 0
    share       cycles / life of the launch that measured the site

A warp that is ready but not chosen waits, too. Shares of sites that several launches measured may add up to more than
1: each launch has its own life, in which other waits are longer, and the estimate of hidden cycles may be too large.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.errors import TraceError
from tui_probe.probekit.finding import percent
from tui_probe.records.counter_sums import line_sums, ratio, site_dtype, sums_dtype
from tui_probe.trace.device_memory import parameter_names
from tui_probe.trace.launch_shape import WARP_SIZE
from tui_probe.trace.sites import read_sites
from tui_probe.trace.source_lines import SourceLines, call_lines, source_position

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.records.counter_sums import LineSums
    from tui_probe.trace.results import Result
    from tui_probe.trace.sites import SiteWait
    from tui_probe.trace.source_lines import SourceLine


GROUPS: Final = ("stall_sites", *(f"stall_sites_{number}" for number in range(2, 9)))
"""Probes of the groups of wait sites, those that usually wait longest first."""
SITE: Final = site_dtype("waited", "passes", "longest")
"""Record per wait site."""
LIFE: Final = np.dtype([("cycles", "<u4")])
"""Record per warp."""
LIFE_SUMS: Final = sums_dtype(LIFE, "longest")
"""Record of a reduced launch."""
_LIFE_SECTION: Final = 1
"""Number of the map with the life of warps."""
_NULL_WAIT: Final = 2
"""Cycles between two clocks with nothing in between, of most instructions."""
COPIES: Final = frozenset({"async", "bulk"})
"""Classes of waits for groups of copies to shared memory."""
_MAX_SHARE: Final = 1.005
"""Sum of shares that text shows as 100%."""
_MAX_LINES: Final = 2
"""Further source lines of a group of wgmma that are named before the rest is cut."""
_MAX_TENSORS: Final = 2
"""Tensors that are named before the rest is cut."""
MIN_PERCENT: Final = 1
"""Part of warp life, in per cent, that some wait of a group must have for further launches: as in the probes' files."""
DELAY: Final = 48
"""Cycles of a wait that the branch to the probe's code hides: measured with a pointer chase on an H100."""


@dataclass(frozen=True, slots=True)
class StallSite:
    """The waits at one instruction."""

    line: int
    opcode: str | None
    source: SourceLine | None
    waited_cycles: int
    passes: int
    wait: SiteWait | None
    life: int = 0
    """Cycles of all measured warps of the launch."""
    raw_longest: int = 0
    """Cycles of the longest wait with its null wait; 0 if none was kept, for want of registers."""
    calls: Mapping[int, SourceLine] = field(default_factory=dict)
    """Lines of the calls through which headers of the CUDA Toolkit were inlined, by offset in the kernel."""
    tensors: tuple[str, ...] = ()
    """Names of the global memory whose accesses warps wait for."""

    @property
    def measured_cycles(self) -> int:
        """Waited cycles between the clocks, without null waits."""
        return max(0, self.waited_cycles - self._null * self.passes)

    @property
    def cycles(self) -> int:
        """Waited cycles with those that the branch hid."""
        return _add_hidden_cycles(self.measured_cycles, self.passes)

    @property
    def share(self) -> float | None:
        """Part of the warp life of its launch."""
        return ratio(self.cycles, self.life)

    @property
    def uncertainty(self) -> float | None:
        """Cycles by which the mean wait may be too long or too short, since 0 to 48 cycles of it are hidden."""
        hidden_cycles = ratio(self.cycles - self.measured_cycles, self.passes)
        return None if hidden_cycles is None else max(hidden_cycles, DELAY - hidden_cycles)

    @property
    def share_uncertainty(self) -> float | None:
        """Uncertainty of the share of warp life."""
        return None if self.uncertainty is None or not self.life else self.uncertainty * self.passes / self.life

    @property
    def longest_wait(self) -> int | None:
        """Cycles of the longest wait, likewise; None where it was not kept."""
        return _add_hidden_cycles(max(0, self.raw_longest - self._null), 1) if self.raw_longest else None

    @property
    def _null(self) -> int:
        return self.wait.null if self.wait else _NULL_WAIT

    @property
    def per_pass(self) -> float | None:
        """Mean cycles of a wait."""
        return ratio(self.cycles, self.passes)

    @property
    def kind(self) -> str:
        """Title of what warps wait for."""
        from tui_probe.sass.wait_classes import WAIT_CLASSES  # brings the model of SASS

        return WAIT_CLASSES.get(self.wait.kind, self.wait.kind) if self.wait else ""

    @property
    def waits_for(self) -> str:
        """``kind`` with names: ``global memory of q``; no names where warps wait for registers."""
        from tui_probe.sass.wait_classes import OPERANDS

        if not self.tensors or (self.wait and self.wait.kind == OPERANDS):
            return self.kind
        ellipsis = ", …" if len(self.tensors) > _MAX_TENSORS else ""
        return f"{self.kind} of {', '.join(self.tensors[:_MAX_TENSORS])}{ellipsis}"

    @property
    def copies_of_this_iteration(self) -> bool:
        """True if warps wait in a loop for copies that they start in the same iteration: a pipeline of depth 1."""
        return self.wait is not None and self.wait.kind in COPIES and self.wait.one_iteration

    @property
    def producer(self) -> str:
        """``LDG attn.py:49``, the instruction that warps wait for; "" where none is known."""
        return self._producer_at({})

    @property
    def place(self) -> str:
        """``b.cu:15``, the line of the program; "" where it is not known."""
        return source_position(self.call or self.source)

    @property
    def call(self) -> SourceLine | None:
        """The line of the program that calls the CUDA Toolkit function in which the instruction is."""
        return self.calls.get(self.line)

    @property
    def producer_in_program(self) -> str:
        """``producer`` with the line of the program."""
        return self._producer_at(self.calls)

    def _producer_at(self, calls: Mapping[int, SourceLine]) -> str:
        if self.wait is None or not self.wait.producers:
            return ""
        producer = self.wait.producers[0]
        producers = [producer]
        # A wait for a group of wgmma, at a line of none of them, may be for any of the group.
        if self.wait.kind == "wgmma" and producer.source and producer.source != self.source:
            producers = [candidate for candidate in self.wait.producers if candidate.previous == producer.previous]
        places = dict.fromkeys(
            source_position(calls.get(instruction.line, instruction.source)) or f"{instruction.line:#06x}"
            for instruction in producers
        )
        places_text = ", ".join(list(places)[: 1 + _MAX_LINES])
        return f"{producer.opcode} {places_text}{', …' if len(places) > 1 + _MAX_LINES else ''}"


@dataclass(frozen=True, slots=True)
class WarpSample:
    """The measured warps of a launch: those of ``blocks`` of its ``grid_blocks`` blocks."""

    warps: int
    blocks: int
    grid_blocks: int

    @classmethod
    def from_result(cls, result: Result) -> WarpSample:
        """Return the warps whose waits and lives are in a result."""
        blocks = len(result.blocks)
        return cls(blocks * -(-result.header.threads // WARP_SIZE), blocks, result.header.blocks)


@dataclass(frozen=True, slots=True)
class LineWaits:
    """The waits of one class at one line, such as the copies of an instruction in an unrolled loop."""

    sites: tuple[StallSite, ...]
    """One or more; the site with the largest share is first."""

    @property
    def main_site(self) -> StallSite:
        """The site with the largest share."""
        return self.sites[0]

    @property
    def share(self) -> float:
        """Part of warp life; sites of several launches may have more than all of it."""
        return sum(site.share or 0 for site in self.sites)

    @property
    def share_uncertainty(self) -> float:
        """Uncertainty of the share of warp life."""
        return sum(site.share_uncertainty or 0 for site in self.sites)

    @property
    def cycles(self) -> int:
        """Waited cycles of all sites."""
        return sum(site.cycles for site in self.sites)

    @property
    def passes(self) -> int:
        """Executions of all sites."""
        return sum(site.passes for site in self.sites)

    @property
    def copies_of_this_iteration(self) -> bool:
        """True if so at all sites: in an unrolled loop, a site may wait for copies of another copy of the loop's body
        that were started one iteration ahead.
        """
        return all(site.copies_of_this_iteration for site in self.sites)

    @property
    def opcodes(self) -> str:
        """``DEPBAR``, ``4 × DEPBAR``, or ``3 SASS instructions`` of several opcodes."""
        if len({site.opcode for site in self.sites}) > 1:
            return f"{len(self.sites)} SASS instructions"
        return f"{len(self.sites)} × {self.main_site.opcode}" if len(self.sites) > 1 else f"{self.main_site.opcode}"


@dataclass(frozen=True, slots=True)
class Stalls:
    """The waits of a launch, or of several that measured different sites, those with the largest share first.

    ``life`` are the cycles of all warps, the mean over launches; ``longest_life`` those of one warp.
    """

    sites: tuple[StallSite, ...]
    life: int
    longest_life: int
    total: int | None = None
    """Instructions whose waits could be measured, in this group or another."""
    offsets: tuple[int, ...] = ()
    """Their offsets; empty in traces of versions that did not keep them."""
    hidden_waits: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Offsets of instructions that may hold warps and cannot be measured, by name."""
    sample: WarpSample | None = None
    folder: Path | None = None
    """Directory of the kernel."""

    @classmethod
    def join(cls, groups: Sequence[Stalls]) -> Stalls:
        """Return the waits of all groups of sites that were measured."""
        sites = (site for group in groups for site in group.sites)
        return cls(
            sites=tuple(sorted(sites, key=lambda site: -(site.share or 0))),
            life=round(fmean(group.life for group in groups)),
            longest_life=max(group.longest_life for group in groups),
            total=max((group.total for group in groups if group.total is not None), default=None),
            offsets=next((group.offsets for group in groups if group.offsets), ()),
            hidden_waits=groups[0].hidden_waits,
            sample=groups[0].sample,
            folder=groups[0].folder,
        )

    @property
    def waited(self) -> int:
        """Cycles at all measured sites."""
        return sum(site.cycles for site in self.sites)

    @property
    def share(self) -> float | None:
        """Part of warp life that is spent at measured sites."""
        return sum(site.share or 0 for site in self.sites) if self.life else None

    @property
    def remaining(self) -> float | None:
        """Part of warp life without measured waits; None where the waits of several launches are more than all."""
        share = self.share
        return None if share is None or share > _MAX_SHARE else max(0.0, 1 - share)

    @property
    def lines(self) -> list[LineWaits]:
        """Executed sites by line and class; of code without lines, by instruction."""
        lines: dict[tuple[str | int, str], list[StallSite]] = {}
        for site in self.sites:
            if site.passes:
                lines.setdefault((site.place or site.line, site.kind), []).append(site)
        return [LineWaits(tuple(sites)) for sites in lines.values()]

    @property
    def worst(self) -> LineWaits | None:
        """The line with the longest waits of a class; of code without lines, the instruction."""
        longest_line = max(self.lines, key=lambda line: line.share, default=None)
        return longest_line if longest_line is not None and longest_line.cycles else None

    @property
    def worst_share(self) -> float | None:
        """Share of warp life of the line with the longest waits; None if there is none."""
        return self.worst.share if self.worst else None

    @property
    def unmeasured(self) -> tuple[int, ...]:
        """Offsets of the sites that no launch has measured; empty where the trace does not have them."""
        measured_lines = {site.line for site in self.sites}
        return tuple(offset for offset in self.offsets if offset not in measured_lines)

    def places(self) -> Mapping[int, str]:
        """Return the lines of the program by offset in the kernel."""
        lines = {**SourceLines.from_folder(self.folder).lines, **call_lines(self.folder)} if self.folder else {}
        return {offset: source_position(line) for offset, line in lines.items()}

    @property
    def threads_missing(self) -> int:
        """Always 0: the sites are added up as warps leave."""
        return 0


def analyse(result: Result, sites: Sequence[int], folder: Path | None = None) -> Stalls:
    """The waits of one launch. TraceError if the records are not of this probe."""
    lines = line_sums(result, SITE, "stall_sites", sites, folder)
    probes = (read_sites(folder) if folder else None) or ()
    waits = {site.instruction.line: site.wait for probe in probes for site in probe.sites if site.wait}
    calls = call_lines(folder) if folder else {}
    life, longest_life = _life(result)
    sites_of_launch = [_stall_site(line, waits.get(line.line), life, calls) for line in lines]
    return Stalls(
        sites=tuple(sorted(sites_of_launch, key=lambda site: -site.cycles)),
        life=life,
        longest_life=longest_life,
        total=next((probe.wait_sites for probe in probes if probe.wait_sites is not None), None),
        offsets=next((probe.wait_offsets for probe in probes if probe.wait_offsets), ()),
        hidden_waits=next((probe.hidden_waits for probe in probes if probe.hidden_waits), {}),
        sample=WarpSample.from_result(result),
        folder=folder,
    )


def measured_text(stalls: Stalls, unmeasured: str) -> str:
    """``53% of warp life at 21 SASS instructions; remaining 47%: issue, fixed-latency dependencies, 8 sites``."""
    executed = sum(bool(site.passes) for site in stalls.sites)
    text = f"{percent(stalls.share or 0, 1)} of warp life at {units.counted(executed, 'SASS instruction')}"
    if stalls.remaining is None:
        return (
            f"{text}. This exceeds 100%: the waits are measured in several launches, and the estimate of hidden"
            f" cycles may be too large. The time without waits is therefore unknown"
        )
    other_causes = ", ".join(filter(None, ("issue", "fixed-latency dependencies", unmeasured)))
    return f"{text}; remaining {percent(stalls.remaining, 1)}: {other_causes}"


def with_tensors(stalls: Stalls, probe_result: ProbeResult) -> Stalls:
    """Return the waits of a result with the names of the memory that warps wait for. TraceError for a damaged log."""
    if not any(site.wait and site.wait.parameters for site in stalls.sites):
        return stalls
    names = parameter_names(probe_result.kernel.trace, probe_result.launch)
    sites = (
        replace(site, tensors=tuple(dict.fromkeys(names[number] for number in site.wait.parameters if number in names)))
        if site.wait
        else site
        for site in stalls.sites
    )
    return replace(stalls, sites=tuple(sites))


def _add_hidden_cycles(cycles: int, passes: int) -> int:
    """Measured cycles with the estimate of those that the branch to the probe hides."""
    return cycles + min(cycles, DELAY * passes)


def _life(result: Result) -> tuple[int, int]:
    """Return cycles of all warps and of the longest one. Raises TraceError."""
    if len(result.sections) <= _LIFE_SECTION:
        raise TraceError(f"{result.path}: the file has no map of warp life, so it is not a result of stall_sites")
    sums = result.reduced(_LIFE_SECTION, LIFE_SUMS)
    if sums is not None:
        return int(sums.records["cycles"].sum()), int(sums.records["longest"].max(initial=0))
    cycles = result.one_record(_LIFE_SECTION, LIFE)["cycles"]
    return int(cycles.sum(dtype=np.uint64)), int(cycles.max(initial=0))


def _stall_site(line: LineSums, wait: SiteWait | None, life: int, calls: Mapping[int, SourceLine]) -> StallSite:
    return StallSite(
        line=line.line,
        opcode=line.opcode,
        source=line.source,
        waited_cycles=line.sums["waited"],
        passes=line.sums["passes"],
        wait=wait,
        life=life,
        raw_longest=line.sums.get("longest", 0),
        calls=calls,
    )
