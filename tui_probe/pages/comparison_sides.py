"""The two sides of a comparison: what they are called, and what has to be the same of both."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tui_probe.draw.shorten import cut_middle, shorten
from tui_probe.draw.spans import width as cells_of
from tui_probe.pages.head import ending_of

if TYPE_CHECKING:
    from tui_probe.probekit.kind import Source
    from tui_probe.trace.model import Trace


@dataclass(frozen=True, slots=True)
class Side:
    """What is compared; ``about`` is what has to be the same on both sides for a fair comparison."""

    trace: str
    about: dict[str, str]
    kernel: str = ""
    """With its index; "" where a whole trace is compared."""
    launch: str = ""
    simulated: bool = False
    ending: str = ""
    """How its program ended, in words."""
    source: Source | None = field(default=None, repr=False, compare=False)
    """Its kernel or launch; None where a whole trace is compared."""
    failed: bool = False
    """Whether it ended with a status other than 0, by a signal, or nobody knows how: broken off."""

    @property
    def name(self) -> str:
        """All of it in words."""
        return self.kernel + self._rest(self.trace)

    def shown(self, cells: int) -> str:
        """Its name in so many cells: what tells kernels and traces apart stays."""
        index, _, name = self.kernel.partition(" ")
        room = max(cells // 2, cells - cells_of(self._rest(self.trace))) - cells_of(index) - 1
        kernel = f"{index} {shorten(name, max(room, 1))}" if name else ""
        left = cells - cells_of(kernel) - cells_of(self._rest(""))
        return cut_middle(kernel + self._rest(cut_middle(self.trace, max(left, 8))), cells)

    def _rest(self, trace: str) -> str:
        of = f"{self.launch} of {trace}" if self.kernel else trace
        return f"{of}, simulated" if self.simulated else of


def side_of(source: Source) -> Side:
    """A kernel or launch."""
    launch = "" if source.launch is None else f", launch {source.launch.number}"
    kernel = f"#{source.kernel.index} {source.kernel.demangled}"
    return replace(side_of_trace(source.trace), kernel=kernel, launch=launch, source=source)


def side_of_trace(trace: Trace) -> Side:
    """A whole trace."""
    state = trace.state
    failed = bool(state.exit_status) or state.signal is not None or trace.broke_off
    return Side(str(trace.directory), _about(trace), simulated=state.simulated, ending=ending_of(trace), failed=failed)


def _about(trace: Trace) -> dict[str, str]:
    device, run = trace.state.device, trace.run_info
    about = {} if device is None else {"device": device.name}
    return about if run is None or run.probe is None else {**about, "probe": run.probe}


def warning_of(one: Trace, other: Trace) -> str:
    """The same of two traces."""
    return warning_of_sides((side_of_trace(one), side_of_trace(other)))


def warning_of_sides(sides: tuple[Side, Side]) -> str:
    """That one program failed where the other did not: what it did not do any more looks like less of it. "" else."""
    before, after = sides
    if before.ending == after.ending or not (before.failed or after.failed):
        return ""
    failed = [f"{letter}'s program" for letter, side in zip("AB", sides, strict=True) if side.failed]
    return f"{' and '.join(failed)} failed: A {before.ending}, B {after.ending}; what follows may be of less work"
