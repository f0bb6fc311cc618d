"""A page of a table whose rows lead to kernels: a document with its cursor on the first row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.pages.table_page import TablePage
from tui_probe.ui.views.document import DocumentView

if TYPE_CHECKING:
    from pathlib import Path


class RowsView(DocumentView):
    """Shows a ``TablePage``."""

    _begun = False

    def resize(self, width: int, height: int) -> None:
        """The first time the cursor goes to the first row."""
        super().resize(width, height)
        if not self._begun and self.gutter:
            self.to_first_row()

    def to_first_row(self) -> None:
        """The cursor to the first row, with the lines above it visible as far as there is room."""
        if not self.width:
            return
        self._begun = True
        if isinstance(self.document, TablePage):
            self.place.cursor = self.document.rows_from
            self.place.fit(self.count, self.room)
            self.changed()

    def shift(self, step: int) -> None:
        """Sideways in a table is the next column to sort by, as in that of kernels."""
        command = "order" if step > 0 else "order_back"
        if command in self.commands():
            self.command(command)
        else:
            super().shift(step)

    def opened(self) -> tuple[Path, int] | None:
        """The trace and the kernel that the row under the cursor leads to."""
        return self.document.opened(self.cursor) if isinstance(self.document, TablePage) else None
