"""What is at hand: the process, the kernel and the launch that keys are about, on the live screen and above it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.probekit.kind import Source
from tui_probe.ui.feed import Snapshot
from tui_probe.ui.launches import NO_EARLIER, NO_LATER, launch_words, newer_result, next_launch

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.launches import Launch
    from tui_probe.ui.feed import ProcessView
    from tui_probe.ui.views.kernels import KernelTable


class AtHand:
    """Of the ``snapshot`` that is shown: the process at a place, the kernel that its table has selected, a launch."""

    def __init__(self, table: KernelTable) -> None:
        self.table = table
        self.snapshot = Snapshot()
        self.paused = False
        """Whether the snapshot stays, whatever comes."""
        self.place = 0
        self._launches: dict[int, Launch] = {}
        """By the index of a kernel, where one was chosen that is not the newest with a result."""
        self._seen: dict[tuple[Path, int], dict[str, object]] = {}
        """By the kernel, which pages were looked at and what was seen of each."""

    @property
    def process(self) -> ProcessView | None:
        """The process that is shown."""
        processes = self.snapshot.processes
        return processes[self.place % len(processes)] if processes else None

    def take_process(self, place: int) -> None:
        """Have the process of this place at hand; behind the last one comes the first. No kernel is selected then."""
        self.place = place
        self.table.forget()
        self._launches.clear()

    def source(self) -> Source | None:
        """The selected kernel and its launch; None where no kernel is selected or known."""
        process, row = self.process, self.table.kernel
        trace = process.trace if process else None
        kernel = trace.kernels.get(row.index) if trace is not None and row is not None else None
        if trace is None or kernel is None:
            return None
        return Source(trace, kernel, self._launches.get(kernel.index))

    def take_launch(self, source: Source, launch: Launch) -> None:
        """Have this launch at hand; the newest one stays the newest, whatever comes."""
        if newer_result(Source(source.trace, source.kernel, launch)):
            self._launches[source.kernel.index] = launch
        else:
            self._launches.pop(source.kernel.index, None)

    def keep_launch(self, source: Source) -> None:
        """Have the launch of this source at hand, whatever comes."""
        if source.launch is not None:
            self._launches[source.kernel.index] = source.launch

    def step_launch(self, source: Source, step: int) -> str:
        """Have the launch ``step`` places on at hand. Returns why there is none, "" if there is."""
        found = next_launch(source, step)
        if found is None:
            return NO_LATER if step > 0 else NO_EARLIER
        self.take_launch(source, found)
        return ""

    def keep_seen(self, source: Source, seen: dict[str, object]) -> None:
        """Remember what was seen of the pages of a kernel, for when somebody comes back to it."""
        self._seen[_kernel_of(source)] = seen

    def seen(self, source: Source) -> dict[str, object]:
        """What was seen of the pages of a kernel when it was left."""
        return self._seen.get(_kernel_of(source), {})

    def launch_words(self) -> str:
        """Which launch of which kernel is at hand: ``#3: launch 5 (2nd of 8 of this kernel)``."""
        source = self.source()
        return "" if source is None else f"#{source.kernel.index}: {launch_words(source)}"


def _kernel_of(source: Source) -> tuple[Path, int]:
    return source.trace.directory, source.kernel.index
