"""Probes that keep out of the way of asynchronous matrix products.

``wgmma.mma_async`` run on while their warps do other things, unless ptxas finds something between them and their wait
that cannot run beside them: it then serialises them, or waits for them earlier than the kernel does, and says so. A
probe that causes this would slow the kernel down rather than measure it. So a point with ``yields = true`` is left out
of a kernel of which ptxas says so more often with it than without the probe.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tui_probe.engine.positions import matches
from tui_probe.engine.walk import instructions
from tui_probe.reasons import because

if TYPE_CHECKING:
    from tui_probe.engine.kernel import Kernel
    from tui_probe.engine.model import Probe
    from tui_probe.reasons import Reason

_SERIALISED: Final = re.compile(
    r"wgmma\.mma_async instructions are serialized|(?:wait_group|warpgroup\.wait) is injected"
)


def serialised(said: str) -> int:
    """How often ptxas says that it serialised ``wgmma`` instructions or waits for them by itself."""
    return len(_SERIALISED.findall(said))


def yielding_sites(kernel: Kernel, probe: Probe) -> Counter[str]:
    """The instructions of a kernel that yielding points of a probe are at, by opcode."""
    positions = [position for point in probe.points if point.yielding for position in point.positions]
    if not positions:
        return Counter()
    return Counter(
        ".".join((one.opcode, *one.modifiers[:1]))
        for one in instructions(kernel.entry)
        if any(matches(position, one) for position in positions)
    )


def without_yielding(probe: Probe) -> Probe:
    """The probe without its yielding points. Its maps stay, and with them what a result looks like."""
    return replace(probe, points=tuple(point for point in probe.points if not point.yielding))


def reason(probe: Probe, sites: Counter[str], before: int | None, after: int | None) -> Reason:
    """Why those sites were left out: ptxas had ``before`` such remarks on the kernel and ``after`` on the probed one;
    None where no ptxas could tell.
    """
    places = ", ".join(f"{count} {opcode}" for opcode, count in sites.items())
    if before is None or after is None:
        return because("wgmma-unchecked", probe=probe.name, sites=places)
    return because("wgmma-serialised", probe=probe.name, sites=places, after=after, before=before)
