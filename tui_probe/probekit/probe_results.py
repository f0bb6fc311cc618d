"""The result of a launch that a view is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.draw.table import safe
from tui_probe.errors import TraceError

if TYPE_CHECKING:
    from tui_probe.probekit.kind import Source
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import Kernel, Run
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


def probe_of(kernel: Kernel) -> str | None:
    """The analysis that a kernel's probe asks for, without its ending."""
    info = kernel.info
    return None if info is None or info.callback is None else info.callback.removesuffix(".py")


def read(source: Source) -> ProbeResult:
    """The result of the launch, or the newest of the kernel. Raises TraceError naming the file."""
    row = source.kernel.result_rows[-1] if source.launch is None else source.launch.result
    if row is None:
        raise TraceError(f"{source.trace.directory}: the launch has no result")
    return read_row(source.trace, source.kernel, row)


def read_row(trace: Run, kernel: Kernel, row: int) -> ProbeResult:
    """The result in a row of the result table, which is one of this kernel's. Raises TraceError naming the file."""
    path = trace.results.path(row)
    if path is None:
        raise TraceError(f"result/{trace.results.name(row)}: its path in the log leads out of the trace")
    number = trace.results.launch(row)
    launch = None if number is None else trace.launches[number]
    return ProbeResult(kernel, launch, probe_of(kernel) or "", kernel.read(path))


def cycles_words(cycles: float, clock_khz: int | None) -> str:
    """``1 234 cycles``, with the time that they take where it is known: ``(0.62 µs)``."""
    words = f"{units.count(round(cycles))} cycles"
    return words if clock_khz is None else f"{words} ({units.duration(cycles / clock_khz / 1e3)})"
