"""Kernels of the table in their order, those that pass the filter, and the selected one.

The selection is a kernel, not a place: it stays on its kernel while rows arrive, move and are filtered. Until the user
has selected one, it is the first row where rows are ranked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.ui.live.kernel_columns import FINDING_POSITION, SHARE_POSITION
from tui_probe.ui.live.kernel_rows import ArrangedRows, RowOrder, row_text
from tui_probe.ui.views.view import contains
from tui_probe.verdicts.kernel_snapshot import GPU_TIME, LAUNCH_CYCLES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.ui.live.kernel_rows import Rows
    from tui_probe.verdicts.kernel_snapshot import KernelSnapshot


class ArrangedKernels:
    """All kernels, those that are shown in ``order``, and the ``selected`` one, None without any."""

    def __init__(self) -> None:
        self.all: Rows = ()
        self.order = RowOrder()
        self.selected: int | None = None
        self.is_held = False
        """True once the user has selected a kernel: rows that arrive do not select another."""
        self.is_arranged = False
        """False while the first rows have not been put in order."""
        self.unread = 0
        """Rows whose directories have not been read."""
        self.share_of = ""
        """Name of the total that shares are of, "" without any."""
        self._arranged = ArrangedRows((), {}, None)
        self._stand_in: tuple[int, int] | None = None
        """The kernel that was selected before a filter left it out, and the one that was selected for it."""
        self._flagged: int | None = None
        """The kernel to which ``!`` went last."""

    # -- rows and their order

    def replace(self, rows: Rows) -> None:
        """Take new rows; those that are shown stay until the new ones are arranged."""
        self.all, self.share_of = rows, _share_of(rows)

    def take(self, arranged: ArrangedRows) -> None:
        """Show rows in a new order, and select another kernel if the selected one is not among them."""
        place_before = self.place
        self._arranged = arranged
        self.is_arranged = bool(self.all)
        self.unread = sum(not row.read for row in self.all)
        if not self.shown:
            return
        if (self.is_ranked or self.ranks_findings) and not self.is_held:
            self.selected = self.shown[0].index
        elif self.selected not in arranged.places:
            self._select_stand_in(min(place_before, len(self.shown) - 1))

    def _select_stand_in(self, place: int) -> None:
        """Select another kernel, since the one that was is not shown; when the filter ends it is selected again."""
        before, index = self.selected, self.shown[place].index
        if before is not None and (self.order.text or self.order.status):
            self._stand_in = (before if self._stand_in is None else self._stand_in[0], index)
        self.selected = index

    @property
    def shown(self) -> Rows:
        """The rows that pass the filter, in order."""
        return self._arranged.shown

    @property
    def filled(self) -> frozenset[str] | None:
        """Columns with a value in some row, if known."""
        return self._arranged.filled

    @property
    def is_ranked(self) -> bool:
        """True if kernels have shares to rank by."""
        return bool(self.share_of)

    @property
    def ranks_findings(self) -> bool:
        """True if rows are in the order of their first findings, where none has a share."""
        return not self.is_ranked and any(row.first is not None for row in self.all)

    @property
    def sort_position(self) -> int:
        """The position of the column by which rows are in order."""
        return self.default_position if self.order.column is None else self.order.column

    @property
    def default_position(self) -> int:
        """The position of the column by which rows are in order unless the user chooses another."""
        return SHARE_POSITION if self.is_ranked else FINDING_POSITION if self.ranks_findings else 0

    # -- the selected kernel

    @property
    def place(self) -> int:
        """The place of the selected kernel among the shown ones, 0 if it is not shown."""
        return 0 if self.selected is None else self._arranged.places.get(self.selected, 0)

    @property
    def kernel(self) -> KernelSnapshot | None:
        """The selected kernel, None if none is shown."""
        if self.selected is None or self.selected not in self._arranged.places:
            return None
        return self.shown[self._arranged.places[self.selected]]

    def select(self, index: int) -> None:
        """Select a kernel for the user, by its index."""
        self.is_held, self._stand_in = True, None
        self.selected = index

    def prefer_probed(self) -> bool:
        """Select the first kernel that failed or was probed, if nothing ranks them. False if nothing changed."""
        probed = next((row for row in self.shown if row.failures or row.status == "probed"), None)
        if self.is_ranked or self.ranks_findings or self.is_held or probed is None:
            return False
        self.selected = probed.index
        return True

    def reselect_filtered_out(self) -> None:
        """Select the kernel again that a filter left out, unless the user has selected another since."""
        if self._stand_in is not None and self.selected == self._stand_in[1]:
            self.selected = self._stand_in[0]
        self._stand_in = None

    def select_flagged(self) -> str:
        """Select the kernel of the report's first finding; if that is selected the next flagged one, after the last
        the first. Return its finding, "" if none is flagged.
        """
        flagged = sorted((row for row in self.shown if row.stands_out), key=lambda row: row.loss_order)
        if not flagged:
            return ""
        place = next((place for place, row in enumerate(flagged) if row.index == self._flagged), -1)
        place = (place + 1) % len(flagged) if self._flagged == self.selected else 0
        self._flagged = flagged[place].index
        self.select(self._flagged)
        return f"flagged kernel {place + 1} of {len(flagged)}: {flagged[place].finding}"

    def find_from_selected(self, text: str) -> int | None:
        """Return the index of the first kernel that contains ``text``, from the selected one on and around the end."""
        return self._find(text, range(self.place, self.place + len(self.shown)))

    def find_next(self, text: str, step: int) -> int | None:
        """Return the index of the next or previous kernel that contains ``text``, around the end."""
        return self._find(text, (self.place + step * distance for distance in range(1, len(self.shown) + 1)))

    def _find(self, text: str, places: Iterable[int]) -> int | None:
        rows = (self.shown[place % len(self.shown)] for place in places)
        return next((row.index for row in rows if contains(row_text(row), text)), None)


def _share_of(rows: Rows) -> str:
    if any(row.time_share is not None for row in rows):
        return GPU_TIME
    return LAUNCH_CYCLES if any(row.share is not None for row in rows) else ""
