"""Stalls inside phases: the waits of single instructions that another probe of the run measured, by phase.

Both probes name positions in the code. If phases were recorded in SASS, the offset of an instruction leads to its
phase. If they were recorded in PTX, the cubin's table of PTX lines leads to the phase. Without this table it is the
source line, which may be in several phases, such as that of a matrix product: its fence, its products and its wait.
Then the wait belongs to the only phase that waits for the same thing, and a wait for another thing to the only phase
that does not wait.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from tui_probe.binaries.cubin import Cubin
from tui_probe.errors import ImageError, PtxError, TraceError, UnsupportedKernelError
from tui_probe.input_limits import CUBIN, PTX_TEXT
from tui_probe.probekit.measured import known_probe
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.shown_results import joined_sources, read_joined, unjoined_sources
from tui_probe.ptx.parser import parse
from tui_probe.ptx.phase_names import (
    BARRIER,
    CLUSTER_BARRIER,
    MBARRIER,
    NAMED_BARRIER,
    PRODUCT_WAIT,
)
from tui_probe.sass.target import GraftTarget
from tui_probe.trace.kernel_files import Offset
from tui_probe.trace.plain_file import read_within
from tui_probe.trace.source_lines import SourceLines, lines_of_original_ptx, source_position

from .code_phases import phases_of_lines, phases_of_offsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from tui_probe.probekit.probe import MeasuredWait
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.trace.model import KernelFacts

    from .analysis import LaunchPhases
    from .kinds import Phase

_WORKS_OF_WAITS: Final = {
    "mbarrier": (MBARRIER,),
    "barrier": (BARRIER, NAMED_BARRIER),
    "cluster barrier": (CLUSTER_BARRIER,),
    "cp.async group": ("copy wait",),
    "bulk copy": ("copy wait",),
    "wgmma": (PRODUCT_WAIT,),
}
"""Works of the phases in which warps wait for the same as at an instruction, by the title of its class."""
_MAX_LINE_DISTANCE: Final = 16
"""Lines of PTX from the code in front of a wait to the wait at most."""


@dataclass(frozen=True)
class PhaseStalls:
    """Measured waits by number of their phase, those with the largest share of warp life first. ``elsewhere`` are
    waits whose phase is unknown. ``launches`` measured them: ``launches 33, 34 of #1``. ``problem``: why their results
    cannot be read; "" if they can.
    """

    by_phase: Mapping[int, Sequence[MeasuredWait]]
    elsewhere: Sequence[MeasuredWait]
    launches: str
    problem: str = ""

    @cached_property
    def shares(self) -> dict[int, float]:
        """The part of warp life of the waits in each phase."""
        return {phase: sum(wait.share for wait in waits) for phase, waits in self.by_phase.items()}

    @property
    def elsewhere_share(self) -> float:
        """The part of warp life of the waits whose phase is unknown."""
        return sum(wait.share for wait in self.elsewhere)


def stalls_of(source: ViewSource, probe_result: ProbeResult, launch: LaunchPhases) -> PhaseStalls | None:
    """Return the waits that another probe of the run measured in this kernel; None if none did."""
    of_kernel = ViewSource(source.trace, source.kernel.kernel, source.launch)
    for other_source in unjoined_sources(of_kernel):
        probe, parts = known_probe(other_source.kernel), joined_sources(other_source)
        if probe.measured_waits is None or not any(part.kernel.result_rows for part in parts):
            continue
        try:
            joined_results = read_joined([part for part in parts if part.kernel.result_rows])
            waits = probe.measured_waits(joined_results.analysis).waits
        except TraceError as error:
            return PhaseStalls({}, (), "", str(error))
        offsets = [_position(wait) for wait in waits]
        phase_at = _phase_finder(probe_result.kernel, joined_results.results[0].kernel, launch, offsets)
        return _group_by_phase(waits, phase_at, joined_results.launch_label)
    return None


def _group_by_phase(
    waits: Iterable[MeasuredWait], phase_at: Callable[[MeasuredWait], int | None], launches: str
) -> PhaseStalls:
    groups: defaultdict[int | None, list[MeasuredWait]] = defaultdict(list)
    for wait in sorted(waits, key=lambda wait: -wait.share):
        if wait.share:
            groups[phase_at(wait)].append(wait)
    elsewhere = groups.pop(None, [])
    return PhaseStalls({phase: group for phase, group in groups.items() if phase is not None}, elsewhere, launches)


def _phase_finder(
    kernel: KernelFacts, measured_kernel: KernelFacts, launch: LaunchPhases, offsets: Iterable[int]
) -> Callable[[MeasuredWait], int | None]:
    """Return a function that finds the phase of a wait measured at one of ``offsets``; it returns None if unknown."""
    numbers = {line: number for number, phase in enumerate(launch.phases) for line in phase.lines}
    in_sass = any(isinstance(site.instruction.line, Offset) for site in launch.sites)
    try:
        if in_sass:
            target = _graft_target(kernel)
            by_position = phases_of_offsets(target, numbers)
            if target.words == _graft_target(measured_kernel).words:
                return lambda wait: by_position.get(_position(wait))
            ptx_lines: Mapping[int, int] = {}
        else:
            text = _ptx_text(kernel, "pruned.ptx")
            by_position = phases_of_lines(text, numbers)
            ptx_lines = _ptx_lines(text, measured_kernel, offsets)
    except (OSError, ImageError, PtxError, UnsupportedKernelError):
        return lambda _: None
    by_place = phases_by_place(
        by_position, SourceLines({}) if kernel.folder is None else SourceLines.from_folder(kernel.folder)
    )

    def phase_of(wait: MeasuredWait) -> int | None:
        line = ptx_lines.get(_position(wait))
        phase = None if line is None else phase_at_line(line, by_position, launch.phases, wait.kind)
        return likely_phase(by_place.get(wait.place, ()), launch.phases, wait.kind) if phase is None else phase

    return phase_of


def phase_at_line(line: int, by_position: Mapping[int, int], phases: Sequence[Phase], kind: str) -> int | None:
    """Return the phase that a wait of a class at a line of PTX is in; None if it is unknown.

    The table of PTX lines may name the code in front of a wait, such as the sum that is the address of its mbarrier.
    """
    phase_number, works = by_position.get(line), _WORKS_OF_WAITS.get(kind)
    if phase_number is None or works is None or phases[phase_number].is_named or phases[phase_number].work in works:
        return phase_number
    wait_starts = ((line, number) for number, phase in enumerate(phases) if phase.work in works for line in phase.lines)
    return min(
        ((start, number) for start, number in wait_starts if line < start <= line + _MAX_LINE_DISTANCE),
        default=(line, phase_number),
    )[1]


def _position(wait: MeasuredWait) -> int:
    """Return the offset of the code that waits: at an mbarrier that of the test, whose result a branch waits for."""
    return wait.offset if wait.kind != "mbarrier" or wait.producer_offset is None else wait.producer_offset


def _ptx_lines(pruned_text: str, measured_kernel: KernelFacts, offsets: Iterable[int]) -> dict[int, int]:
    """Return the line of the pruned PTX of each offset, by the table of PTX lines in the measured cubin; {} without."""
    if measured_kernel.folder is None or measured_kernel.file("original.ptx") is None:
        return {}
    original_text = _ptx_text(measured_kernel, "original.ptx")
    lines, is_exact = lines_of_original_ptx(measured_kernel.folder, original_text, offsets)
    if not is_exact:
        return {}
    entry_lines = [
        next(function.span.line for function in parse(text).entries() if function.name == measured_kernel.name)
        for text in (original_text, pruned_text)
    ]
    return {offset: line - entry_lines[0] + entry_lines[1] for offset, line in lines.items()}


def phases_by_place(by_position: Mapping[int, int], lines: SourceLines) -> dict[str, tuple[int, ...]]:
    """Return the numbers of the phases of each source line (``attn.py:31``), from those of positions in the code."""
    phases: defaultdict[str, dict[int, None]] = defaultdict(dict)
    for position, phase in by_position.items():
        if place := source_position(lines.program_line(position)):
            phases[place][phase] = None
    return {place: tuple(numbers) for place, numbers in phases.items()}


def likely_phase(numbers: Sequence[int], phases: Sequence[Phase], kind: str) -> int | None:
    """Return the phase of ``numbers`` that a wait of a class is in; None if several are possible."""
    if len(numbers) > 1:
        works = _WORKS_OF_WAITS.get(kind)
        matches_wait = (lambda phase: phase.work in works) if works else (lambda phase: phase.activity != "wait")
        numbers = [number for number in numbers if matches_wait(phases[number])]
    return numbers[0] if len(numbers) == 1 else None


def _kernel_file(kernel: KernelFacts, name: str) -> Path:
    path = kernel.file(name)
    if path is None:
        raise FileNotFoundError(name)
    return path


def _ptx_text(kernel: KernelFacts, name: str) -> str:
    return read_within(_kernel_file(kernel, name), PTX_TEXT).decode("utf-8", "replace")


def _graft_target(kernel: KernelFacts) -> GraftTarget:
    return GraftTarget.from_cubin(Cubin.read(read_within(_kernel_file(kernel, "pruned.bin"), CUBIN)), kernel.name)
