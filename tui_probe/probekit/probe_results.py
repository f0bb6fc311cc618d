"""Kernel, launch and result that a view shows, and the probe that made the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.printable import printable, shell_word
from tui_probe.errors import ChoiceError, TraceError, did_you_mean
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.recognised import analysis_name
from tui_probe.probekit.record_counts import unrecorded_launch_reason
from tui_probe.trace.locate import kernel_filter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.probekit.page_kinds import ViewKind
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import Kernel, KernelFacts, ProbedKernel, Run, Trace
    from tui_probe.trace.results import Result


TENSOR_HALF: Final = {"7.0": 1024, "7.5": 1024, "8.0": 2048, "8.6": 1024, "8.9": 1024, "9.0": 4096}
"""Dense half-precision operations of the tensor cores per SM and clock, by compute capability."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """A result of ``probe``; ``launch`` is None if the log does not name its launch."""

    kernel: ProbedKernel
    launch: Launch | None
    probe: str
    result: Result

    @property
    def launch_label(self) -> str:
        """``launch 7 of #2``."""
        number = None if self.launch is None else self.launch.number
        launch = f"result/{self.result.path.name}" if number is None else f"launch {number}"
        return f"{launch} of #{self.kernel.index}"

    @property
    def kernel_name(self) -> str:
        """Demangled name of the kernel, without control characters."""
        return printable(self.kernel.demangled)

    @property
    def simulated(self) -> bool:
        return self.kernel.trace.state.simulated

    @property
    def sms(self) -> int | None:
        """Number of SMs of the device, None if the log does not state it."""
        device = self.kernel.trace.state.device
        return None if device is None else device.sms

    @property
    def measured_ms(self) -> float | None:
        """Milliseconds of the original kernel, in which all counted events happened; None if it was not timed, or if
        the counts cover only a sample of its blocks.
        """
        return None if self.result.sample is not None else self.kernel.time_ms

    @property
    def sites(self) -> tuple[int, ...]:
        """The lines of ``pruned.ptx`` for which the first map has a record."""
        info = self.kernel.read_info()
        return info.sites.get(0, ()) if info else ()

    @property
    def products_per_clock(self) -> int | None:
        """Half-precision multiply-adds per SM and clock; None for an unknown or simulated GPU."""
        device = self.kernel.trace.state.device
        operations = None if device is None or self.simulated else TENSOR_HALF.get(device.capability)
        return None if operations is None else operations // 2

    @property
    def clock_khz(self) -> int | None:
        """Cycles per millisecond at the device's highest clock; None for an unknown or simulated GPU."""
        device = self.kernel.trace.state.device
        return None if device is None or self.simulated or not device.clock_khz else device.clock_khz


def read_result(source: ViewSource) -> ProbeResult:
    """Read the result of the launch, or the newest of the kernel. Raises TraceError naming the file."""
    row = source.kernel.find_newest_result() if source.launch is None else source.launch.result
    if row is None:
        raise TraceError(f"{source.trace.directory}: the launch has no result")
    return read_result_row(source.trace, source.kernel, row)


def read_result_row(trace: Run, kernel: KernelFacts, row: int) -> ProbeResult:
    """Read the result in a row of the result table, a result of this kernel. Raises TraceError naming the file."""
    path = trace.results.path(row)
    if path is None:
        raise TraceError(f"result/{trace.results.name(row)}: its path in the log is outside of the trace")
    probed_kernel = kernel.kernel_of_result(row)
    number = trace.results.launch(row)
    launch = None if number is None else trace.launches[number]
    return ProbeResult(probed_kernel, launch, analysis_name(probed_kernel) or "", probed_kernel.read_result_file(path))


def cycles_text(cycles: float, clock_khz: int | None) -> str:
    """Format cycles, with their time if the clock is known: ``1 234 cycles (0.62 µs)``."""
    text = f"{units.count(round(cycles))} cycles"
    return text if clock_khz is None else f"{text} ({units.duration(cycles / clock_khz / 1e3)})"


@dataclass(frozen=True, slots=True)
class ViewTarget:
    """Target of a view. ``other_matches`` are the indices of the other kernels that matched."""

    source: ViewSource
    missing_reason: str | None
    other_matches: tuple[int, ...] = ()


def choose_target(trace: Trace, kind: ViewKind, kernel: str | None = None, launch: int | None = None) -> ViewTarget:
    """Choose the first matching kernel with data for the view, else the first matching kernel. Kernels are sorted by
    GPU time; if no kernel is named, those with results come first.

    ``kernel`` is an index, or a regular expression that is searched for in both forms of the name; ``launch`` the
    number of a launch of the process. Raises ChoiceError if there is none.
    """
    wanted_launch = None if launch is None else _launch_by_number(trace, launch)
    matches = list(_candidates(trace, kernel, wanted_launch))
    if not matches:
        raise ChoiceError(_no_kernel_text(trace, kernel, wanted_launch))
    matches.sort(key=lambda candidate: -(candidate.gpu_time.total_ns if candidate.gpu_time else 0.0))
    if kernel is None:
        matches.sort(key=lambda candidate: not candidate.result_rows)
    sources = [ViewSource(trace, candidate, wanted_launch) for candidate in matches]
    first_reason: str | None = None
    for index, source in enumerate(sources):
        reason = kind.missing_reason(source)
        if reason is None:
            other_matches = (
                () if kernel is None else tuple(candidate.index for candidate in matches[:index] + matches[index + 1 :])
            )
            return ViewTarget(source.for_analyses(*kind.probes), None, other_matches)
        first_reason = first_reason or reason
    return ViewTarget(sources[0], first_reason)


def kernels_named(trace: Trace, kernel: str) -> list[Kernel]:
    """Return the kernels that an index or a regular expression selects. Raises ChoiceError if there is none."""
    matches = list(_candidates(trace, kernel, None))
    if not matches:
        raise ChoiceError(_no_kernel_text(trace, kernel, None))
    return matches


def _launch_by_number(trace: Trace, number: int) -> Launch:
    row = trace.launches.row_of(number)
    if row is None and (reason := unrecorded_launch_reason(trace, number)) is not None:
        raise ChoiceError(reason)
    if row is None:
        raise ChoiceError(
            f"there is no launch {number}: the log has {units.counted(trace.state.launches, 'launch')}, counted from 0"
        )
    launch: Launch = trace.launches[row]
    return launch


def _candidates(trace: Trace, kernel: str | None, launch: Launch | None) -> Iterator[Kernel]:
    for candidate in filter(kernel_filter(kernel), trace.kernels):
        if launch is None or launch.kernel == candidate.index:
            yield candidate


def _no_kernel_text(trace: Trace, kernel: str | None, launch: Launch | None) -> str:
    if not len(trace.kernels):
        return f"{trace.directory}: no kernel was launched"
    if launch is not None and kernel is not None:
        return f"launch {launch.number} is a launch of kernel #{launch.kernel}, not of {kernel}"
    if launch is not None:
        return f"the log does not name the kernel of launch {launch.number}"
    names = [
        name
        for candidate in trace.kernels
        for name in (candidate.demangled, candidate.demangled.partition("(")[0], candidate.name)
    ]
    suggestion = did_you_mean(kernel or "", names)
    if suggestion:
        return f"no kernel is named {kernel}{suggestion}"
    report, kernels = f"tui-probe report {shell_word(trace.directory)}", units.counted(len(trace.kernels), "kernel")
    return f"no kernel is named {kernel}: {report} lists the {kernels}"


def count_viewable(trace: Trace, kind: ViewKind) -> tuple[int, str | None]:
    """Count the kernels of a trace with results for a view, and return the reason of the first that has none. Probed
    kernels come first, since the run was made for these.
    """
    kernels = sorted(trace.kernels, key=lambda kernel: kernel.status != "probed")
    reasons = [kind.missing_reason(ViewSource(trace, kernel)) for kernel in kernels]
    return reasons.count(None), next((reason for reason in reasons if reason is not None), None)
