"""The head of a drawing: what is drawn at the left, how much of it at the right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import clip, width

if TYPE_CHECKING:
    from tui_probe.draw.canvas import Canvas

_GAP = 2
_DOT = " · "
_USUAL = 24
"""Cells of a name with which it can be told from others."""


def draw_head(canvas: Canvas, what: str, which: str, name: str, totals: str, role: str = "dim") -> None:
    """What the drawing is, a launch and its kernel, and ``totals``.

    Totals are cut only where not even the launch has room beside them. Of ``what`` only the title is told, or nothing,
    where a name of usual length has no room beside it.
    """
    room = canvas.width - width(which) - _GAP
    totals = clip(totals, max(room, 0))
    left = room - width(totals) - 1
    for words in (what, what.partition(":")[0]):
        if left - width(words) - len(_DOT) >= min(width(name), _USUAL):
            which, left = f"{words}{_DOT}{which}", left - width(words) - len(_DOT)
            break
    canvas.text(0, 0, f"{which} {shorten(name, max(left, 0))}", "title")
    canvas.text(canvas.width - width(totals), 0, totals, role)


def named(title: str, about: str) -> str:
    """``Timeline: blocks and warps on SMs over time``: the title of a view and the first clause of what it is about."""
    ends = [place for sign in (",", ":", ";") if (place := about.find(sign)) > 0]
    return f"{title}: {about[: min(ends, default=len(about))]}"
