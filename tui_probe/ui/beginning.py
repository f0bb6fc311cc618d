"""The screen begins at the kernel and the launch that the command line named, once the trace has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.errors import ChoiceError
from tui_probe.probekit.kind import Source
from tui_probe.trace.address import means

if TYPE_CHECKING:
    from tui_probe.trace.address import Address
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import Trace
    from tui_probe.ui.screens.live import LiveScreen


class Beginning:
    """What is left to be done of an address; nothing after it was found, or cannot come any more."""

    def __init__(self, address: Address | None) -> None:
        self._wanted = None if address is None or address.is_whole else address

    def look(self, screen: LiveScreen) -> None:
        """Go to the kernel if it is there; say so where it will never be."""
        process, wanted = screen.process, self._wanted
        if wanted is None or process is None or process.trace is None:
            return
        if screen.table.waits or not screen.at_hand.snapshot.loaded:
            return  # nothing can be selected yet
        try:
            source = _found(wanted, process.trace, screen)
        except ChoiceError as error:
            self._wanted = None
            screen.notice(str(error))
            return
        if source is not None:
            self._wanted = None
            screen.table.select(source.kernel.index)
            if source.launch is not None:
                screen.at_hand.keep_launch(source.kernel.index, source.launch)
            screen.action_open()
        elif not screen.at_hand.snapshot.running:
            self._wanted = None
            screen.notice(f"nothing in this trace is {wanted}")


def _found(wanted: Address, trace: Trace, screen: LiveScreen) -> Source | None:
    """The kernel, the first of those that are meant, and the launch if one was named."""
    launch = None if wanted.launch is None else _launch(trace, wanted.launch)
    if wanted.launch is not None and launch is None:
        return None
    is_meant = means(wanted.kernel)
    for row in screen.process.kernels if screen.process else ():
        kernel = trace.kernels.get(row.index)
        if kernel is not None and is_meant(row) and (launch is None or launch.kernel == row.index):
            return Source(trace, kernel, launch)
    return None


def _launch(trace: Trace, number: int) -> Launch | None:
    row = trace.launches.row_of(number)
    if row is None:
        return None
    launch: Launch = trace.launches[row]
    return launch
