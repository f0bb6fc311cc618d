"""The kernel or launch that is marked to be compared with another.

A screen ends with the trace that it shows, and with the run that is run again: what is marked outlives it, for as long
as the program runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.errors import ChoiceError
from tui_probe.probekit.kind import Source
from tui_probe.trace.follow import open_trace

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.model import Trace


@dataclass(frozen=True, slots=True)
class Mark:
    """A kernel of a trace by its index; ``launch`` is the row of one of its launches, None for none."""

    directory: Path
    kernel: int
    launch: int | None

    def of(self, trace: Trace) -> Source:
        """What is marked in its trace, as that is known now. Raises ChoiceError if it is not there any more."""
        kernel = trace.kernels.get(self.kernel)
        if kernel is None or (self.launch is not None and self.launch >= len(trace.launches)):
            raise ChoiceError(f"{self.directory} no longer has what was marked")
        return Source(trace, kernel, None if self.launch is None else trace.launches[self.launch])

    def read(self) -> Source:
        """What is marked in a trace that is not open. Raises TraceError, OSError and ChoiceError."""
        return self.of(open_trace(self.directory))


def mark_of(source: Source) -> Mark:
    """The mark of a kernel or launch."""
    launch = None if source.launch is None else source.launch.row
    return Mark(source.trace.directory.absolute(), source.kernel.index, launch)


class Marked:
    """Holds at most one mark."""

    def __init__(self) -> None:
        self._mark: Mark | None = None

    def keep(self, mark: Mark) -> None:
        """Have this marked and nothing else."""
        self._mark = mark

    def take(self) -> Mark | None:
        """What is marked; nothing is from then on."""
        mark, self._mark = self._mark, None
        return mark


MARKED = Marked()
"""The one of the program."""
