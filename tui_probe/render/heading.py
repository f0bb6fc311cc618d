"""The head of a drawing: what is drawn at the left, how much of it at the right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.render.shorten import shorten
from tui_probe.render.spans import clip, width

if TYPE_CHECKING:
    from tui_probe.render.canvas import Canvas

_GAP = 2


def draw_head(canvas: Canvas, which: str, name: str, totals: str, role: str = "dim") -> None:
    """A launch and its kernel, and ``totals``, which are cut only where not even the launch has room beside them."""
    room = canvas.width - width(which) - _GAP
    totals = clip(totals, max(room, 0))
    canvas.text(0, 0, f"{which} {shorten(name, max(room - width(totals) - 1, 0))}", "title")
    canvas.text(canvas.width - width(totals), 0, totals, role)
