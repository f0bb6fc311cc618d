"""Wait sites and spills of a kernel with the source line of each instruction, from its machine code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.kernel_cache import PRUNED_FILE
from tui_probe.errors import ImageError, UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.operations import operation_name
from tui_probe.sass.scoreboards import wait_sites
from tui_probe.sass.spills import spills_by_line, stack_accesses
from tui_probe.sass.target import GraftTarget

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.engine.image_kernels import FoundKernel
    from tui_probe.reasons import Reason
    from tui_probe.sass.scoreboards import Producer, WaitSite
    from tui_probe.sass.spills import SpillLine


@dataclass(frozen=True)
class KernelWaits:
    """The wait sites of a kernel; ``reason`` says why they are unknown. ``lines`` has file and line by offset."""

    sites: tuple[WaitSite, ...] = ()
    names: tuple[str, ...] = ()
    lines: dict[int, tuple[str, int]] | None = None
    reason: Reason | None = None
    spills: tuple[SpillLine, ...] = ()
    """Accesses of the stack by source line."""

    @property
    def instructions(self) -> int:
        """Number of instructions, padding included."""
        return len(self.names)

    def name(self, place: WaitSite | Producer) -> str:
        """Return the name of an instruction, ``LDG``."""
        return self.names[place.index]

    def line(self, place: WaitSite | Producer) -> tuple[str, int] | None:
        """Return the source file and line of an instruction; None without a line table."""
        return (self.lines or {}).get(place.at)


def kernel_waits(kernel: FoundKernel, directory: Path) -> KernelWaits:
    """Return the wait sites of a kernel that was prepared in ``directory``.

    Without machine code in its file they are those of the code that ptxas made of its PTX.
    """
    try:
        cubin = kernel.machine_code() or _assembled_cubin(directory, f"sm_{kernel.arch}")
        target = GraftTarget.of(cubin, kernel.name)
        names = tuple(operation_name(word, target.arch) or f"{word.operation:#05x}" for word in target.words)
        graph, lines = FlowGraph.of(target), target.source_lines()
        spills = tuple(spills_by_line(stack_accesses(target, graph), lines))
        return KernelWaits(tuple(wait_sites(target, graph)), names, lines, spills=spills)
    except (ImageError, UnsupportedKernelError) as error:
        return KernelWaits(reason=error.reason)


def _assembled_cubin(directory: Path, arch: str) -> Cubin:
    try:
        return Cubin.read((directory / PRUNED_FILE).read_bytes())
    except FileNotFoundError:
        raise UnsupportedKernelError(because("no-machine-code", gpu=arch)) from None
