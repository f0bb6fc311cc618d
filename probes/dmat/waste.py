"""Which access moves sectors for nothing: those beyond what its lanes ask for.

    ideal    the fewest sectors that the bytes of a request's lanes fit into, of an instruction whose bytes are known
    wasted   sectors - ideal, at least 0

An access of 16 bytes per lane touches 16 sectors per request and wastes none, so sectors per request alone do not tell.
Atomics are left out: one lane's addition to a sum wastes nothing that could be saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .requests import lanes_of_requests, sectors_of_requests
from .table import SECTOR

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from tui_probe.analysis.access_lines import AccessLine

    from .accesses import Part
    from .table import LineAccesses


def worst_access(rows: Iterable[LineAccesses]) -> tuple[LineAccesses, int] | None:
    """The instruction that wastes most sectors, and how many; None if none is known to waste any."""
    known = [(row, lost) for row in rows if (lost := row.wasted)]
    return max(known, key=lambda pair: pair[1], default=None)


def asked_by_lanes(code: Mapping[int, AccessLine]) -> NDArray[np.float64]:
    """By line, the sectors that a lane's access asks for (f8); infinitely many where nothing can be wasted, or known.

    What is beyond the last line has the last value.
    """
    asked = np.full(max(code, default=0) + 2, np.inf)
    for line, each in code.items():
        if each.bytes is not None and each.kind != "atomic":
            asked[line] = each.bytes / SECTOR
    return asked


def moved_shares(part: Part) -> NDArray[np.float64]:
    """For each record its share of the sectors that its request moves (f8)."""
    return sectors_of_requests(part) / lanes_of_requests(part)


def wasted_shares(part: Part, asked: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each record its share of the sectors that its request wastes (f8); 0 where the records name no lines."""
    lines = part.lines()
    if lines is None:
        return np.zeros(part.kept, dtype=np.float64)
    shares = moved_shares(part) - asked[np.minimum(lines, len(asked) - 1)]
    return np.maximum(shares, 0.0)
