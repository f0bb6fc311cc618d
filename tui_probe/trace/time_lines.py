"""The lines of GPU times, all of a block of lines at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tui_probe.trace.columns import TimeColumns
from tui_probe.trace.line_fields import LineFields
from tui_probe.trace.time_samples import NONE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.trace.line_block import LineBlock

_BEGIN = b"[time] launch "


def gpu_times(block: LineBlock, left: NDArray[np.bool_]) -> TimeColumns:
    """Lines ``[time] launch N kernel I (key K) original|probed ns T for W (host H)``, taken away from ``left``.

    Others that begin so are left to be read one by one.
    """
    at = block.begin_with(_BEGIN)
    found = _columns(block, at[:0], keyed=False)[0]
    for keyed in (False, True):
        columns, good = _columns(block, at, keyed=keyed)
        found = found.followed_by(columns)
        left[at[good]] = False
        at = at[~good]
    return found


def _columns(block: LineBlock, at: NDArray[np.int64], *, keyed: bool) -> tuple[TimeColumns, NDArray[np.bool_]]:
    """The times of the lines that are exactly of one of the two forms, and which of them are."""
    more = 2 if keyed else 0
    fields = LineFields(block, at, 10 + more, behind=_BEGIN)
    fields.words(kernel=1, ns=4 + more, **({"for": 6 + more, "key": 3} if keyed else {"for": 6}))
    probed = fields.is_word(3 + more, b"probed")
    fields.expect(probed | fields.is_word(3 + more, b"original"))
    digits = {0: 18, 2: 9, 5 + more: 18, 7 + more: 18, **({4: 9} if keyed else {})}
    launch, kernel, ns, weight, *key = fields.numbers(digits)
    good, host = _host(fields, 7 + more)
    columns = TimeColumns(
        kernel=kernel,
        launch=launch,
        key=key[0].astype(np.int64) if keyed else np.full(len(at), NONE),
        probed=probed,
        ns=ns,
        weight=weight,
        host=host,
    )
    return columns.part(good), good


def _host(fields: LineFields, last: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which lines end with word ``last``, or with ``host H`` behind it, and that number."""
    good = fields.good.copy()
    plain = fields.end(last) == fields.ends
    named = fields.is_word(last + 1, b"host") & (fields.end(last + 2) == fields.ends)
    fields.good = good & named
    (host,) = fields.numbers({last + 2: 18})
    named = fields.good
    return good & plain | named, np.where(named, host.astype(np.int64), NONE)
