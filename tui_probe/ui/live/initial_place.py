"""Place where the live screen begins: of the command line, of the previous run, or where the user left the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from tui_probe.errors import ChoiceError
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.record_counts import unrecorded_launch_reason
from tui_probe.trace.locate import kernel_filter
from tui_probe.trace.user_state import last_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.trace.launches import Launch
    from tui_probe.trace.locate import Address
    from tui_probe.trace.model import Trace
    from tui_probe.trace.user_state import LastView
    from tui_probe.ui.live.current_selection import CurrentSelection
    from tui_probe.ui.live.kernel_table import KernelTable
    from tui_probe.ui.live.snapshots import ProcessView
    from tui_probe.ui.session import SameKernel, Session
    from tui_probe.ui.widgets.pane import Tab


_REOPENED: Final = "reopened where you left it; press q to go back"


class PlaceHost(Protocol):
    """The parts of the live screen that a place on it consists of."""

    table: KernelTable
    current_selection: CurrentSelection

    @property
    def current(self) -> str:
        """The name of the page that is shown."""

    @property
    def is_current(self) -> bool:
        """True if no other screen is in front."""

    @property
    def page_tabs(self) -> Sequence[Tab]:
        """The pages that there are."""

    def notice(self, text: str) -> None:
        """Say something for some seconds."""

    def action_page(self, page: str) -> None:
        """Show a page and go there."""

    def focus_table(self, *, in_table: bool) -> None:
        """Let keys go to the table, or to the page."""

    def show_screen_of_kernel(self, page: str = "", line: int | None = None) -> None:
        """Go to the screen of the selected kernel, to its first page or to this one, and to a line of the PTX."""


class InitialPlace:
    """Goes to the place where the screen begins; ``go`` is called with each snapshot until the trace has the place."""

    def __init__(self, host: PlaceHost) -> None:
        self._host = host
        self.has_resumed = False
        """True once the place was looked up at which the user left the trace."""
        self._same_kernel: SameKernel | None = None
        """Kernel of the previous run from which this run was started, until it is launched or the user selects one."""
        self._page: tuple[int, str] | None = None
        """Kernel and page that this run was asked for, until it ends or the user goes elsewhere."""
        self._address: Address | None = None
        """Kernel or launch that the command line named, until it is selected."""
        self._has_address = False
        """True if the command line named a kernel or launch."""
        self._session: Session | None = None

    def take(self, session: Session) -> None:
        """Take the places that were asked for."""
        self._session = session
        self._address = None if session.address is None or session.address.is_whole else session.address
        self._has_address = self._address is not None
        self._same_kernel = session.begin if session.target is not None else None

    def go(self) -> None:
        """Go where the command line says, as soon as that is there."""
        self._resume()
        self._go_to_same()
        self._open_page()
        self._go_to_address()

    def _resume(self) -> None:
        """Go where the user was when this trace was left, unless it is being made, or a place was named, or chosen."""
        selection, table = self._host.current_selection, self._host.table
        if self.has_resumed or not selection.snapshot.is_loaded or selection.process is None or table.is_waiting:
            return
        self.has_resumed = True
        if selection.snapshot.is_running or self._has_address or table.is_held:
            return
        place = last_view(selection.process.directory)
        if place is None:
            table.prefer_probed()
        else:
            self._go_to(place, selection.process)

    def _go_to(self, place: LastView, process: ProcessView) -> None:
        host = self._host
        if place.column or place.reverse:
            host.table.sort_by(place.column, reverse=place.reverse)
        if place.page in {tab.id for tab in host.page_tabs} and place.page != host.current:
            host.action_page(place.page)
            host.focus_table(in_table=True)
        if place.kernel is not None and any(row.index == place.kernel for row in process.kernels):
            host.table.select(place.kernel)
            if place.kernel_page:
                host.show_screen_of_kernel(place.kernel_page, place.line)
        if self._session is not None and (place.kernel_page or place.column or place.reverse):
            self._session.notice = self._session.notice or _REOPENED

    def _go_to_same(self) -> None:
        selection, table = self._host.current_selection, self._host.table
        if self._same_kernel is None or selection.process is None or table.is_waiting:
            return
        index = self._same_kernel.index_in(selection.process.kernels, is_complete=not selection.snapshot.is_running)
        page = self._same_kernel.page
        if table.is_held or index is not None:
            self._same_kernel = None
        if not table.is_held and index is not None:
            table.select(index)
            self._page = (index, page) if page else None

    def _open_page(self) -> None:
        """Open the page that the run was asked for, once it has ended; not if the user is elsewhere by then."""
        snapshot = self._host.current_selection.snapshot
        if self._page is None or snapshot.is_running or not snapshot.is_loaded:
            return
        (index, page), self._page = self._page, None
        if self._host.is_current and self._host.table.selected_index == index:
            self._host.show_screen_of_kernel(page)

    def _go_to_address(self) -> None:
        host = self._host
        target = self._addressed()
        if isinstance(target, str):
            host.notice(target)
        elif target is not None:
            host.table.select(target.kernel.index)
            host.current_selection.pin_launch(target)
            host.show_screen_of_kernel()

    def _addressed(self) -> ViewSource | str | None:
        """Return kernel and launch once the trace has them, or why it never will; None until then and afterwards."""
        selection, address = self._host.current_selection, self._address
        process = selection.process
        if address is None or process is None or process.trace is None:
            return None
        if self._host.table.is_waiting or not selection.snapshot.is_loaded:
            return None  # nothing can be selected yet
        try:
            target: ViewSource | str | None = _addressed_source(address, process, process.trace)
        except ChoiceError as error:
            target = str(error)
        if target is None and not selection.snapshot.is_running:
            target = f"this trace has no {address}"
        if target is not None:
            self._address = None
        return target


def _addressed_source(address: Address, process: ProcessView, trace: Trace) -> ViewSource | None:
    """The kernel, the first of those that are meant, and the launch if one was named."""
    launch = None if address.launch is None else _launch_numbered(trace, address.launch)
    if address.launch is not None and launch is None:
        return None
    is_meant = kernel_filter(address.kernel)
    for row in process.kernels:
        kernel = trace.kernels.get(row.index)
        if kernel is not None and is_meant(row) and (launch is None or launch.kernel == row.index):
            return ViewSource(trace, kernel, launch)
    return None


def _launch_numbered(trace: Trace, number: int) -> Launch | None:
    row = trace.launches.row_of(number)
    if row is None and (reason := unrecorded_launch_reason(trace, number)) is not None:
        raise ChoiceError(reason)
    if row is None:
        return None
    launch: Launch = trace.launches[row]
    return launch
