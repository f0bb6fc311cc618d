"""Result of the launch that a view shows, and the probe that made it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.draw.table import safe
from tui_probe.errors import TraceError
from tui_probe.probekit.recognised import analysis_name

if TYPE_CHECKING:
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import KernelFacts, ProbedKernel, Run
    from tui_probe.trace.results import Result


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
        the counts are of a sample of its blocks only.
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


def read_result(source: ViewSource) -> ProbeResult:
    """The result of the launch, or the newest of the kernel. Raises TraceError naming the file."""
    row = source.kernel.newest_result if source.launch is None else source.launch.result
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
