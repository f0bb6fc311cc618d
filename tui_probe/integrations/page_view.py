"""One page of a kernel in a notebook: the picture or the text that ``tui-probe show`` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tui_probe.api.kernels import trace_of
from tui_probe.draw.picture import svg_text
from tui_probe.draw.view import no_progress
from tui_probe.errors import ChoiceError, UsageError
from tui_probe.pages.page_registry import require_page
from tui_probe.pages.view_output import text_lines, view_document, view_lines
from tui_probe.probekit.view_target import choose_target

if TYPE_CHECKING:
    from tui_probe.api.kernels import Kernel
    from tui_probe.draw.view import View
    from tui_probe.probekit.page_kinds import ViewSource

COLUMNS = 110
ROWS = 30
"""Size of a drawing in cells. A page of text has as many rows as it needs."""


class PageView:
    """A page that was opened. ``str()`` is its text; a notebook shows it as SVG."""

    def __init__(self, name: str, source: ViewSource, view: View, columns: int, rows: int) -> None:
        self._name, self._source, self._view = name, source, view
        self._columns = columns
        self._lines = list(view_lines(view, columns, rows if hasattr(view, "prepare") else None))

    def __str__(self) -> str:
        return "\n".join(text_lines(self._lines))

    def __repr__(self) -> str:
        return f"<page {self._name} of {self._view.title}>"

    def _repr_svg_(self) -> str:
        """Return the page as SVG, for notebooks; texts of the trace are escaped."""
        return svg_text(self._lines, self._columns, self._view.title)

    def to_dict(self) -> dict[str, Any]:
        """Return the document of ``tui-probe show PAGE --format json``."""
        return view_document(self._name, self._source, self._view)


def view(kernel: Kernel, page: str, *, launch: int | None = None, columns: int = COLUMNS, rows: int = ROWS) -> PageView:
    """Open a page of a kernel, such as ``lines`` or ``source``; ``launch`` is the number of a launch.

    Raises UsageError for a page that kernels do not have, ChoiceError if it has no data of this kernel.
    """
    kind = require_page(page).of_kernel
    if kind is None:
        raise UsageError(f"{page} is a page of a whole trace: use tui-probe show {page}")
    choice = choose_target(trace_of(kernel), kind, str(kernel.index), launch)
    if choice.missing is not None:
        raise ChoiceError(f"page {page} of {kernel.demangled} has no data: {choice.missing}")
    return PageView(page, choice.source, kind.open(choice.source, no_progress), columns, rows)
