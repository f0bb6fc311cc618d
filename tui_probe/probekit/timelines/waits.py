"""What a timeline tells of waiting: how long blocks took, and how long slots stood empty between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tui_probe.draw import units
from tui_probe.probekit.kept import sampled_words
from tui_probe.probekit.probe import Waits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.analysis.timeline import Intervals
    from tui_probe.probekit.timelines.launch import LaunchTimeline


def gaps(blocks: Intervals) -> NDArray[np.int64]:
    """Cycles (i8) between each block and the one before it in its slot."""
    follows = (np.diff(blocks.sm) == 0) & (np.diff(blocks.slot) == 0)
    between: NDArray[np.int64] = (blocks.start[1:] - blocks.end[:-1])[follows]
    return between


def timeline_waits(launch: LaunchTimeline) -> Waits:
    """Distributions over blocks, and over gaps where all blocks were measured."""
    blocks = launch.timeline.blocks
    words = f"{units.counted(len(blocks), 'block')}"
    if (sample := launch.timeline.sample) is not None:
        return Waits(launch.which, {"one block": blocks.duration}, f"{words}; {sampled_words(sample)}")
    words += "; a gap is a slot that waits for its next block"
    return Waits(launch.which, {"one block": blocks.duration, "one gap": gaps(blocks)}, words)
