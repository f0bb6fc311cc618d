"""The screen begins at the kernel and the launch that the command line named, once the trace has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.errors import ChoiceError
from tui_probe.pages.launch_counts import not_recorded
from tui_probe.probekit.kind import Source
from tui_probe.trace.address import means

if TYPE_CHECKING:
    from tui_probe.trace.address import Address
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import Trace
    from tui_probe.ui.at_hand import AtHand
    from tui_probe.ui.feed import ProcessView


class Beginning:
    """What is left to be done of an address; nothing after it was found, or cannot come any more."""

    def __init__(self, address: Address | None) -> None:
        self._wanted = None if address is None or address.is_whole else address

    def look(self, at_hand: AtHand) -> Source | str | None:
        """The kernel and the launch as soon as the trace has them; why they will never be there; None until then."""
        process, wanted = at_hand.process, self._wanted
        if wanted is None or process is None or process.trace is None:
            return None
        if at_hand.table.waits or not at_hand.snapshot.loaded:
            return None  # nothing can be selected yet
        try:
            found: Source | str | None = _found(wanted, process, process.trace)
        except ChoiceError as error:
            found = str(error)
        if found is None and not at_hand.snapshot.running:
            found = f"nothing in this trace is {wanted}"
        if found is not None:
            self._wanted = None
        return found


def _found(wanted: Address, process: ProcessView, trace: Trace) -> Source | None:
    """The kernel, the first of those that are meant, and the launch if one was named."""
    launch = None if wanted.launch is None else _launch(trace, wanted.launch)
    if wanted.launch is not None and launch is None:
        return None
    is_meant = means(wanted.kernel)
    for row in process.kernels:
        kernel = trace.kernels.get(row.index)
        if kernel is not None and is_meant(row) and (launch is None or launch.kernel == row.index):
            return Source(trace, kernel, launch)
    return None


def _launch(trace: Trace, number: int) -> Launch | None:
    row = trace.launches.row_of(number)
    if row is None and (why := not_recorded(trace, number)) is not None:
        raise ChoiceError(why)
    if row is None:
        return None
    launch: Launch = trace.launches[row]
    return launch
