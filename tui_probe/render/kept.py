"""How much of what a probe wanted to keep is in a result, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tui_probe.render import units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.trace.results import Result


def kept_words(result: Result) -> str:
    """``kept 96 of 4 096 records; 12 of 16 slots written``, the maps in their order; "" if the file does not tell."""
    return "; ".join(_maps(result))


def _maps(result: Result) -> Iterator[str]:
    for index, about in enumerate(result.about):
        attempts, totals = result.attempts(index), result.totals(index)
        if attempts is not None and totals is not None:
            unknown = int(np.count_nonzero(attempts < 0))
            more = f" ({units.counted(unknown, 'slot')} ended without telling)" if unknown else ""
            yield f"kept {units.count(totals[0])} of {units.counted(totals[1], 'record')}{more}"
        elif about.kind == "marked":
            written = result.written(index)
            if written is not None:
                yield f"{units.count(int(np.count_nonzero(written)))} of {units.counted(written.size, 'slot')} written"
