"""Findings that need no probe: checks of the simulated GPU, launches that do not end, idle SMs, spilled registers.

A grid is judged by the SMs that it reaches, and by the blocks that fit on the GPU together::

    idle SMs = 1 - blocks / SMs                      where there are fewer blocks than SMs
    fill     = blocks / (SMs x resident blocks per SM)

The simulated GPU has few SMs so that it is quick, and runs programs that are written for a real one. There the grid is
judged by the SMs of such a GPU as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from statistics import median
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.probekit.finding import SHARE, Evidence, Finding, Gain, counted, derived
from tui_probe.verdicts.code_places import spill_text, worst_spill
from tui_probe.verdicts.simulator_findings import simulator_findings
from tui_probe.verdicts.unended_launches import unended_finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.probekit.finding import Provenance
    from tui_probe.trace.model import KernelFacts

GRID_KEY: Final = "grid"
"""The finding of a grid that leaves SMs or residency unused."""
SPILLS_KEY: Final = "spills"
"""The finding of registers that the assembler spilled to local memory."""
_MIN_IDLE_SMS: Final = 0.1
"""The part of SMs without a block from which on the grid stands out."""
_MAX_FILL: Final = 0.25
"""The part of the resident blocks up to which a grid stands out that reaches all SMs."""
_GRIDS_READ: Final = 64
"""Launches whose grids are read where they differ, evenly spread."""
_OWN_GPU: Final = "the GPU"
_REAL_GPUS: Final = {"8.0": ("an A100", 108), "9.0": ("an H100", 132)}
"""The GPU that a simulated one of a compute capability stands for, and its SMs."""
_GRID_ADVICE: Final = "launch more blocks, each with less work, until every SM has several blocks"
_SPILL_ADVICE: Final = "split the kernel, unroll less, or allow more registers (__launch_bounds__, -maxrregcount)"


@dataclass(frozen=True, slots=True)
class GridFill:
    """Number of ``blocks`` next to what a GPU holds; ``resident`` is that of blocks per SM, None if it is not known."""

    blocks: int
    gpu: str
    sms: int
    resident: int | None

    @property
    def idle_share(self) -> float:
        """The part of the SMs that get no block."""
        return max(0.0, 1 - self.blocks / self.sms)

    @property
    def leaves_sms_idle(self) -> bool:
        """True if that many SMs get no block that it stands out."""
        return self.idle_share > _MIN_IDLE_SMS

    @property
    def fill(self) -> float | None:
        """Blocks over those that fit on the GPU together; None if that is not known."""
        return None if self.resident is None else self.blocks / (self.sms * self.resident)


def static_findings(kernel: KernelFacts) -> Iterator[Finding]:
    """Yield faults of the simulated GPU's checks, launches that do not end, notable grids and spills; nothing of a
    kernel without launches.

    Reads its ``process.log``.
    """
    yield from simulator_findings(kernel)
    yield from unended_finding(kernel)
    yield from _grid_finding(kernel)
    yield from _spill_finding(kernel)


def grid_fills(kernel: KernelFacts) -> Iterator[GridFill]:
    """The fill of the GPU that it ran on, then of the one that a simulated GPU stands for."""
    blocks, device = _usual_blocks(kernel), kernel.trace.state.device
    if blocks is None or device is None or not device.sms or kernel.status == "excluded":
        return
    yield GridFill(blocks, _OWN_GPU, device.sms, kernel.blocks_per_sm)
    if kernel.trace.state.simulated and device.capability in _REAL_GPUS:
        yield GridFill(blocks, *_REAL_GPUS[device.capability], None)


def runs_on_few_sms(kernel: KernelFacts) -> bool:
    """Return whether a grid reaches so few SMs of a real GPU that no unit of it can limit the kernel."""
    grid_fill = next(grid_fills(kernel), None)
    return grid_fill is not None and not kernel.trace.state.simulated and grid_fill.blocks <= _MAX_FILL * grid_fill.sms


def _usual_blocks(kernel: KernelFacts) -> int | None:
    """The blocks of a launch; the median where launches differ."""
    if kernel.grid is None:
        return None
    if not kernel.grid_varies:
        return prod(kernel.grid)
    rows, launches = kernel.rows, kernel.trace.launches
    step = max(1, len(rows) // _GRIDS_READ)
    return int(median(prod(launches[rows[index]].grid) for index in range(0, len(rows), step)))


def _grid_finding(kernel: KernelFacts) -> Iterator[Finding]:
    """The worst of the fills that stand out. A grid that fills a quarter of a real GPU's SMs leaves the rest idle; the
    simulated programs are small, so that only such a grid stands out there.
    """
    fills = list(grid_fills(kernel))
    if not fills:
        return
    of_this_gpu, *of_real_gpus = fills
    notable = [fill for fill in of_real_gpus if fill.blocks <= _MAX_FILL * fill.sms]
    if of_this_gpu.leaves_sms_idle or (of_this_gpu.fill is not None and of_this_gpu.fill <= _MAX_FILL):
        notable.append(of_this_gpu)
    if not notable:
        return
    worst = max(notable, key=lambda fill: fill.idle_share)
    gain = Gain(round(worst.idle_share * worst.sms), worst.sms, "SMs") if worst.leaves_sms_idle else None
    text = "; ".join(_fill_text(fill) for fill in notable[::-1])
    yield Finding(GRID_KEY, "idle SMs" if worst.leaves_sms_idle else "small grid", text, stands_out=True,
                  values=_fill_values(worst), gain=gain, advice=_GRID_ADVICE)  # fmt: skip


def _fill_values(fill: GridFill) -> dict[str, Evidence]:
    """Return the numbers of a grid; those of a GPU that it did not run on are modelled."""
    provenance: Provenance = "counted" if fill.gpu == _OWN_GPU else "modelled"
    idle_sms = {"idle_sms": Evidence(round(fill.idle_share * fill.sms), "SMs", 0, provenance)}
    return {
        **(idle_sms if fill.leaves_sms_idle else {}),
        "blocks": counted(fill.blocks),
        "sms": Evidence(fill.sms, "SMs", None, provenance),
        "resident_blocks_per_sm": counted(fill.resident),
        "fill": derived(fill.fill, SHARE, 1),
    }


def _fill_text(fill: GridFill) -> str:
    """``4 blocks leave 104 of 108 SMs of an A100 idle``; ``132 blocks are 12% of one wave``."""
    blocks = units.counted(fill.blocks, "block")
    if fill.leaves_sms_idle:
        verb = "leaves" if fill.blocks == 1 else "leave"
        return f"{blocks} {verb} {fill.sms - fill.blocks} of the {fill.sms} SMs of {fill.gpu} idle"
    wave = f"{fill.sms} SMs × {fill.resident} resident blocks"
    return f"{blocks} are {fill.fill or 0:.0%} of one wave on {fill.gpu} ({wave})"


def _spill_finding(kernel: KernelFacts) -> Iterator[Finding]:
    spilled = kernel.spills_pruned
    if spilled:
        text = f"{units.size(spilled)} stored and loaded per thread, in addition to {kernel.registers_pruned} registers"
        worst, values = worst_spill(kernel), {"spill_bytes": counted(spilled, "B", 0)}
        if worst is not None:
            text += f"; {spill_text(worst)}"
            values |= {"line_loads": counted(worst.loads), "line_stores": counted(worst.stores)}
        yield Finding(SPILLS_KEY, "spills", text, stands_out=True, values=values, advice=_SPILL_ADVICE)
