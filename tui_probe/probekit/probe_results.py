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
"""Dense operations in half precision of the tensor cores of an SM in a clock, by compute capability."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """One result. ``probe`` made it; ``launch`` is None where the log does not name its launch."""

    kernel: ProbedKernel
    launch: Launch | None
    probe: str
    result: Result

    @property
    def which(self) -> str:
        """``launch 7 of #2``."""
        number = None if self.launch is None else self.launch.number
        launch = f"result/{self.result.path.name}" if number is None else f"launch {number}"
        return f"{launch} of #{self.kernel.index}"

    @property
    def name(self) -> str:
        """The kernel's, safe to show."""
        return printable(self.kernel.demangled)

    @property
    def simulated(self) -> bool:
        return self.kernel.trace.state.simulated

    @property
    def sms(self) -> int | None:
        """SMs of the device, if the log tells."""
        device = self.kernel.trace.state.device
        return None if device is None else device.sms

    @property
    def timed_ms(self) -> float | None:
        """Milliseconds of the original in which all that was counted happened; None where it was not timed, and where
        the counts are of a sample of its blocks only.
        """
        return None if self.result.sample is not None else self.kernel.time_ms

    @property
    def sites(self) -> tuple[int, ...]:
        """The lines of ``pruned.ptx`` that the first map has a record for."""
        info = self.kernel.read_info()
        return info.sites.get(0, ()) if info else ()

    @property
    def products_per_clock(self) -> int | None:
        """Multiply-adds in half precision of an SM in a clock; None for an unknown or simulated GPU."""
        device = self.kernel.trace.state.device
        operations = None if device is None or self.simulated else TENSOR_HALF.get(device.capability)
        return None if operations is None else operations // 2

    @property
    def clock_khz(self) -> int | None:
        """Cycles per millisecond at the device's highest clock; None where it is unknown, or the device simulated."""
        device = self.kernel.trace.state.device
        return None if device is None or self.simulated or not device.clock_khz else device.clock_khz


def read_result(source: ViewSource) -> ProbeResult:
    """The result of the launch, or the newest of the kernel. Raises TraceError naming the file."""
    row = source.kernel.find_newest_result() if source.launch is None else source.launch.result
    if row is None:
        raise TraceError(f"{source.trace.directory}: the launch has no result")
    return read_result_row(source.trace, source.kernel, row)


def read_result_row(trace: Run, kernel: KernelFacts, row: int) -> ProbeResult:
    """The result in a row of the result table, which is one of this kernel's. Raises TraceError naming the file."""
    path = trace.results.path(row)
    if path is None:
        raise TraceError(f"result/{trace.results.name(row)}: its path in the log is outside of the trace")
    probed = kernel.of_result(row)
    number = trace.results.launch(row)
    launch = None if number is None else trace.launches[number]
    return ProbeResult(probed, launch, analysis_name(probed) or "", probed.read(path))


def cycles_text(cycles: float, clock_khz: int | None) -> str:
    """``1 234 cycles``, with the time that they take where it is known: ``(0.62 µs)``."""
    text = f"{units.count(round(cycles))} cycles"
    return text if clock_khz is None else f"{text} ({units.duration(cycles / clock_khz / 1e3)})"


@dataclass(frozen=True, slots=True)
class ViewTarget:
    """Target of a view. ``also`` has the indices of other kernels that matched as well."""

    source: ViewSource
    missing: str | None
    also: tuple[int, ...] = ()


def choose_target(trace: Trace, kind: ViewKind, kernel: str | None = None, launch: int | None = None) -> ViewTarget:
    """The first kernel that is meant and has what the view needs, else the first that is meant. Kernels with more GPU
    time are before others; where no kernel is named, those with results are before all.

    ``kernel`` is an index, or a regular expression that is searched for in both forms of the name; ``launch`` the
    number of a launch of the process. Raises ChoiceError if there is none.
    """
    at = None if launch is None else _launch(trace, launch)
    meant = list(_candidates(trace, kernel, at))
    if not meant:
        raise ChoiceError(_no_kernel_text(trace, kernel, at))
    meant.sort(key=lambda candidate: -(candidate.gpu_time.total_ns if candidate.gpu_time else 0.0))
    if kernel is None:
        meant.sort(key=lambda candidate: not candidate.result_rows)
    sources = [ViewSource(trace, candidate, at) for candidate in meant]
    why: str | None = None
    for place, source in enumerate(sources):
        missing = kind.missing(source)
        if missing is None:
            others = (
                () if kernel is None else tuple(candidate.index for candidate in meant[:place] + meant[place + 1 :])
            )
            return ViewTarget(source.under(*kind.probes), None, others)
        why = why or missing
    return ViewTarget(sources[0], why)


def kernels_named(trace: Trace, kernel: str) -> list[Kernel]:
    """The kernels that an index or a regular expression means. Raises ChoiceError if there is none."""
    meant = list(_candidates(trace, kernel, None))
    if not meant:
        raise ChoiceError(_no_kernel_text(trace, kernel, None))
    return meant


def _launch(trace: Trace, number: int) -> Launch:
    row = trace.launches.row_of(number)
    if row is None and (why := unrecorded_launch_reason(trace, number)) is not None:
        raise ChoiceError(why)
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
    near = did_you_mean(kernel or "", names)
    if near:
        return f"no kernel is named {kernel}{near}"
    report, kernels = f"tui-probe report {shell_word(trace.directory)}", units.counted(len(trace.kernels), "kernel")
    return f"no kernel is named {kernel}: {report} lists the {kernels}"


def count_viewable(trace: Trace, kind: ViewKind) -> tuple[int, str | None]:
    """Count the kernels of a trace with results for a view, with the reason of the first that has none; of one that was
    probed, where there is any: it is for those that the run was made.
    """
    kernels = sorted(trace.kernels, key=lambda kernel: kernel.status != "probed")
    reasons = [kind.missing(ViewSource(trace, kernel)) for kernel in kernels]
    return reasons.count(None), next((reason for reason in reasons if reason is not None), None)
