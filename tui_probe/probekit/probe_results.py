"""Result of the launch that a view shows, and the probe that made it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.draw.table import safe
from tui_probe.errors import TraceError
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.recognised import recognised

if TYPE_CHECKING:
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import Kernel, Run, Trace
    from tui_probe.trace.results import Result


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """One result. ``probe`` made it; ``launch`` is None where the log does not say of which launch it is."""

    kernel: Kernel
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
        return safe(self.kernel.demangled)

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
        the counts are of a sample of its blocks alone.
        """
        return None if self.result.sample is not None else self.kernel.time_ms

    @property
    def sites(self) -> tuple[int, ...]:
        """The lines of ``pruned.ptx`` that the first map has a record for."""
        return self.kernel.info.sites.get(0, ()) if self.kernel.info else ()

    @property
    def clock_khz(self) -> int | None:
        """Cycles per millisecond at the device's highest clock; None where it is unknown, or the device simulated."""
        device = self.kernel.trace.state.device
        return None if device is None or self.simulated or not device.clock_khz else device.clock_khz


def analysis_name(kernel: Kernel) -> str | None:
    """The analysis that a kernel's probe asks for, without its ending; of one of several probes else its name."""
    info = kernel.info
    if info is not None and info.callback is not None:
        return info.callback.removesuffix(".py")
    return kernel.probe or (recognised(kernel) if _unnamed(kernel) else None)


def _unnamed(kernel: Kernel) -> bool:
    """Return True if neither the trace nor the run that started it names the probe."""
    run = kernel.trace.run_info
    return run is None or run.probe is None


def aimed(source: ViewSource, *probes: str) -> ViewSource:
    """Select the kernel of these probes from a run that had several: the kernel as the first of them had it
    that left a result, and the launch, or in the place of one that had another probe the nearest that had this.
    """
    kernels = source.kernel.by_probe()
    return _aimed(source, [kernel for kernel in kernels if kernel.probe and analysis_name(kernel) in probes])


def aimed_by_name(source: ViewSource, *probes: str) -> ViewSource:
    """The same for those who must not read files: a probe of one's own that names another's analysis is not found."""
    return _aimed(source, [kernel for kernel in source.kernel.by_probe() if kernel.probe in probes])


def _aimed(source: ViewSource, feeding: list[Kernel]) -> ViewSource:
    launch = source.launch
    if not feeding:
        return source
    if launch is not None and launch.result is not None:
        made_by = source.trace.results.probe(launch.result)
        feeding.sort(key=lambda kernel: kernel.probe != made_by)
    best = next((kernel for kernel in feeding if kernel.result_rows), feeding[0])
    return ViewSource(source.trace, best, _nearest(source.trace, best, launch))


def sources_by_probe(source: ViewSource) -> tuple[ViewSource, ...]:
    """The kernel as each probe of the run had it, with the launch, or the nearest that had this probe."""
    trace = source.trace
    kernels = source.kernel.by_probe()
    return tuple(ViewSource(trace, kernel, _nearest(trace, kernel, source.launch)) for kernel in kernels)


def _nearest(trace: Trace, kernel: Kernel, launch: Launch | None) -> Launch | None:
    """The launch, or the nearest with a result in the kernel, of the same shape if there is one."""
    if launch is None or launch.result is None or launch.result in kernel.result_rows:
        return launch
    rows = [row for number in kernel.result_rows if (row := trace.results.launch(number)) is not None]
    if not rows:
        return launch
    shape = (launch.grid, launch.block, launch.shared)
    nearest: list[Launch] = sorted(
        (trace.launches[row] for row in rows), key=lambda candidate: abs(candidate.row - launch.row)
    )
    return next(
        (candidate for candidate in nearest if (candidate.grid, candidate.block, candidate.shared) == shape), nearest[0]
    )


def read_result(source: ViewSource) -> ProbeResult:
    """The result of the launch, or the newest of the kernel. Raises TraceError naming the file."""
    row = source.kernel.newest_result if source.launch is None else source.launch.result
    if row is None:
        raise TraceError(f"{source.trace.directory}: the launch has no result")
    return read_result_row(source.trace, source.kernel, row)


def read_result_row(trace: Run, kernel: Kernel, row: int) -> ProbeResult:
    """The result in a row of the result table, which is one of this kernel's. Raises TraceError naming the file."""
    path = trace.results.path(row)
    if path is None:
        raise TraceError(f"result/{trace.results.name(row)}: its path in the log leads out of the trace")
    kernel = kernel.with_probe(trace.results.probe(row))
    number = trace.results.launch(row)
    launch = None if number is None else trace.launches[number]
    return ProbeResult(kernel, launch, analysis_name(kernel) or "", kernel.read(path))


def cycles_text(cycles: float, clock_khz: int | None) -> str:
    """``1 234 cycles``, with the time that they take where it is known: ``(0.62 µs)``."""
    text = f"{units.count(round(cycles))} cycles"
    return text if clock_khz is None else f"{text} ({units.duration(cycles / clock_khz / 1e3)})"
