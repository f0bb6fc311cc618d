"""How much of what a probe wanted to keep is in a result, in words."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.draw import units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.trace.result_sample import Sample
    from tui_probe.trace.results import Result


WITH_DETAIL: Final = "run with --detail"
"""What to do where a result was reduced and does not tell what is asked for."""


def kept_words(result: Result) -> str:
    """``kept 96 of 4 096 records; 12 of 16 slots written``, the maps in their order; "" if the file does not tell."""
    sample = () if result.sample is None else (sampled_words(result.sample),)
    return "; ".join((*_maps(result), *sample))


def sampled_words(sample: Sample) -> str:
    """``sampled 64 of 1 024 blocks, one in 16``: all that a probe says of such a launch is of these blocks."""
    blocks, whole = sample.blocks, units.counted(prod(sample.grid), "block")
    if len(blocks) == 1:
        return f"sampled block {blocks.start} of {whole}"
    which = f"{blocks.start} to {blocks[-1]}" if blocks.step == 1 else f"one in {units.count(blocks.step)}"
    return f"sampled {units.count(len(blocks))} of {whole}, {which}"


def _maps(result: Result) -> Iterator[str]:
    for index, about in enumerate(result.about):
        attempts, totals = result.attempts(index), result.totals(index)
        if attempts is not None and totals is not None:
            unknown = int(np.count_nonzero(attempts < 0))
            more = f" (unknown for {units.counted(unknown, 'slot')})" if unknown else ""
            yield f"kept {units.count(totals[0])} of {units.counted(totals[1], 'record')}{more}"
        elif about.kind == "marked":
            written = result.written(index)
            if written is not None:
                yield f"{units.count(int(np.count_nonzero(written)))} of {units.counted(written.size, 'slot')} written"
        elif about.kind == "reduced":
            yield _reduced(result, index)


def _reduced(result: Result, index: int) -> str:
    """``one record per block kept``, and how many have none."""
    left = result.reduced(index, f"V{result.about[index].record_bytes}")
    if left is None or left.group == "launch":
        return "one record kept of the launch"
    lacking = int(np.count_nonzero(~left.saved))
    words = f"one record per {left.group} kept"
    return f"{words}, {units.count(lacking)} of {units.count(left.saved.size)} lack it" if lacking else words
