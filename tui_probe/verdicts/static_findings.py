"""Findings that need no probe: SMs that a grid leaves idle, and registers that the assembler spilled.

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
from tui_probe.probekit.finding import Finding, Gain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.trace.model import KernelFacts

GRID_KEY: Final = "grid"
_MIN_IDLE_SMS: Final = 0.1
"""The part of SMs without a block from which on the grid stands out."""
_MAX_FILL: Final = 0.25
"""The part of the resident blocks up to which a grid stands out that reaches all SMs."""
_GRIDS_READ: Final = 64
"""Launches whose grids are read where they differ, evenly spread."""
_REAL_GPUS: Final = {"8.0": ("an A100", 108), "9.0": ("an H100", 132)}
"""The GPU that a simulated one of a compute capability stands for, and its SMs."""
_GRID_ADVICE: Final = "launch more blocks, each with less work, until every SM has several"
_SPILL_ADVICE: Final = "split the kernel, unroll less, or allow more registers (__launch_bounds__, -maxrregcount)"


@dataclass(frozen=True, slots=True)
class GridFill:
    """Number of ``blocks`` beside what a GPU holds; ``resident`` is that of blocks per SM, None if it is not known."""

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
    """Yield notable grids and spills; nothing of a kernel without launches. Reads its ``process.log``."""
    yield from _grid_finding(kernel)
    yield from _spill_finding(kernel)


def grid_fills(kernel: KernelFacts) -> Iterator[GridFill]:
    """The fill of the GPU that it ran on, then of the one that a simulated GPU stands for."""
    blocks, device = _usual_blocks(kernel), kernel.trace.state.device
    if blocks is None or device is None or not device.sms or kernel.status == "excluded":
        return
    yield GridFill(blocks, "the GPU", device.sms, kernel.blocks_per_sm)
    if kernel.trace.state.simulated and device.capability in _REAL_GPUS:
        yield GridFill(blocks, *_REAL_GPUS[device.capability], None)


def _usual_blocks(kernel: KernelFacts) -> int | None:
    """The blocks of a launch; the median where launches differ."""
    if kernel.grid is None:
        return None
    if not kernel.grid_varies:
        return prod(kernel.grid)
    rows, launches = kernel.rows, kernel.trace.launches
    step = max(1, len(rows) // _GRIDS_READ)
    return int(median(prod(launches[rows[at]].grid) for at in range(0, len(rows), step)))


def _grid_finding(kernel: KernelFacts) -> Iterator[Finding]:
    """The worst of the fills that stand out. A grid that fills a quarter of a real GPU's SMs leaves the rest idle; the
    simulated programs are small, so that only such a grid stands out there.
    """
    fills = list(grid_fills(kernel))
    if not fills:
        return
    own, *real = fills
    notable = [fill for fill in real if fill.blocks <= _MAX_FILL * fill.sms]
    notable += [own] * (own.leaves_sms_idle or (own.fill is not None and own.fill <= _MAX_FILL))
    if not notable:
        return
    worst = max(notable, key=lambda fill: fill.idle_share)
    values = {"blocks": worst.blocks, "sms": worst.sms, "resident_blocks_per_sm": worst.resident, "fill": worst.fill}
    gain = Gain(round(worst.idle_share * worst.sms), worst.sms, "SMs") if worst.leaves_sms_idle else None
    text = "; ".join(_fill_text(fill) for fill in notable[::-1])
    yield Finding(GRID_KEY, "idle SMs" if worst.leaves_sms_idle else "small grid", text, stands_out=True, values=values,
                  gain=gain, advice=_GRID_ADVICE)  # fmt: skip


def _fill_text(fill: GridFill) -> str:
    """``4 blocks leave 104 of 108 SMs of an A100 idle``; ``132 blocks fill 12% of the GPU: 132 SMs hold 8 each``."""
    blocks = units.counted(fill.blocks, "block")
    if fill.leaves_sms_idle:
        verb = "leaves" if fill.blocks == 1 else "leave"
        return f"{blocks} {verb} {fill.sms - fill.blocks} of the {fill.sms} SMs of {fill.gpu} idle"
    return f"{blocks} fill {fill.fill or 0:.0%} of {fill.gpu}: {fill.sms} SMs hold {fill.resident} each"


def _spill_finding(kernel: KernelFacts) -> Iterator[Finding]:
    spilled = kernel.spills_pruned
    if spilled:
        text = f"{units.size(spilled)} stored and loaded per thread, beside {kernel.registers_pruned} registers"
        yield Finding("spills", "spills", text, stands_out=True, values={"spill_bytes": spilled}, advice=_SPILL_ADVICE)
