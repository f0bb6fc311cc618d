"""A kernel with a probe in its PTX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.engine.edits import Edits, marked
from tui_probe.engine.in_vain import in_vain
from tui_probe.engine.insertion import insert_probe
from tui_probe.engine.kernel_info import kernel_info
from tui_probe.engine.module_variables import replay_hazard, share_variables
from tui_probe.engine.names import Names
from tui_probe.engine.ptx_target import fitted
from tui_probe.engine.storage import map_slots
from tui_probe.ptx.waiting import blocks_may_wait

if TYPE_CHECKING:
    from tui_probe.engine.kernel import Kernel
    from tui_probe.engine.model import Probe
    from tui_probe.engine.site_notes import SiteNotes
    from tui_probe.reasons import Reason


@dataclass(frozen=True, slots=True)
class Probed:
    """A kernel with a probe in it: its PTX, the text of its kernel.info, and what was learned of the probe's sites."""

    ptx: str
    info: str
    notes: SiteNotes


def probed_kernel(kernel: Kernel, probe: Probe, *, sampled: bool = False) -> tuple[str, str]:
    """The probed PTX of a kernel, and the text of its kernel.info. Raises UnsupportedKernelError."""
    probed = with_probe(kernel, probe, sampled=sampled)
    return probed.ptx, probed.info


def with_probe(
    kernel: Kernel,
    probe: Probe,
    *,
    arch: int | None = None,
    sampled: bool = False,
    note: Reason | None = None,
    most: int = 0,
) -> Probed:
    """A kernel with a probe in it for a device of ``arch`` (90 for sm_90; None: one that the PTX names), and a ``note``
    for people in its kernel.info. Raises UnsupportedKernelError.

    ``most``: the registers that a thread may have; 0: as many as the assembler takes.
    """
    kernel, probe = fitted(kernel, probe, arch)
    names, edits = Names(kernel.pruned), Edits(kernel.module.source)
    shared = share_variables(kernel, names, edits)
    if most and kernel.entry.body_span is not None:
        edits.before(kernel.entry.body_span, marked([f".maxnreg {most}"], probe.name))
    inserted = insert_probe(kernel, probe, names, edits, shared, sampled=sampled)
    info = kernel_info(
        kernel.entry.name,
        len(kernel.entry.parameters),
        map_slots(probe, inserted.sites),
        probe.callback,
        shared.variables,
        replay_hazard(kernel),
        sampled=sampled,
        independent=not blocks_may_wait([kernel.entry, *kernel.functions]),
        note=note or (in_vain(probe, kernel) if inserted.in_vain else None),
    )
    return Probed(kernel.edited(edits), info, inserted.notes)
