"""Numbers of SMs as records name them, looked at before anything is looked up by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.errors import TraceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_SMS: Final = 4096
"""More than any device has, of which numbers may have gaps."""


def sms_of(sm: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The SMs that records name, ascending, and the place of each record's among them.

    TraceError if they cannot be numbers of SMs: the file is damaged, or another probe's.
    """
    sms, place = np.unique(np.asarray(sm, dtype=np.int64), return_inverse=True)
    if len(sms) and not 0 <= sms[0] <= sms[-1] < MOST_SMS:
        wrong = int(sms[-1] if sms[-1] >= MOST_SMS else sms[0])
        raise TraceError(f"a record names SM {wrong}: it is damaged, or not of this probe")
    return sms, place
