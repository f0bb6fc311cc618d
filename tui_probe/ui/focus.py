"""The signs that tell which pane has the keys, and where its cursor is. All have a form in ASCII (``draw.spans``)."""

from __future__ import annotations


def pane_sign(focused: bool) -> str:
    """What the first line of a pane begins with, where there are several."""
    return "▶" if focused else " "


def cursor_sign(focused: bool) -> str:
    """What the line of the cursor begins with: a bar in the pane with the keys, a thin one in any other."""
    return "▌" if focused else "│"


def edge_sign(focused: bool) -> str:
    """What the line of the cursor ends with, at the right edge, where its ground does not reach so far."""
    return "▐" if focused else "│"


def ground_of(focused: bool) -> str:
    """The role of the ground of the line of the cursor."""
    return "select" if focused else "idle"
