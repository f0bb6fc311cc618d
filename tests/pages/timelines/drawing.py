"""Drawings and documents as text, and their goldens."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from tests.golden import golden
from tui_probe.draw.view import Document, View, no_progress
from tui_probe.pages.views.output import text_lines, view_lines
from tui_probe.probekit import probe_results
from tui_probe.probekit.kind import Source
from tui_probe.probekit.measured import probe_of
from tui_probe.probekit.timelines.launch import LaunchTimeline

SIZES = ((80, 24), (120, 40), (200, 50))
EVERY_FORM = [
    pytest.param(size, ascii_only, id=f"{size[0]}x{size[1]}{'-ascii' if ascii_only else ''}")
    for size in SIZES
    for ascii_only in (False, True)
]


def text_of(view: View, size: tuple[int, int], *, ascii_only: bool = False) -> list[str]:
    """The lines of a view; of a drawing exactly as many as there are."""
    width, height = size
    shown = None if isinstance(view, Document) else height
    lines = list(text_lines(view_lines(view, width, shown, ascii_only=ascii_only)))
    assert max(map(cell_len, lines)) <= width
    assert isinstance(view, Document) or len(lines) == height
    return lines


def after(view: View, *commands: str, size: tuple[int, int] = (80, 24)) -> list[str]:
    """The lines after some commands, drawn after each as a screen does."""
    lines = text_of(view, size)
    for command in commands:
        assert command in view.commands()
        view.press(command)
        lines = text_of(view, size)
    return lines


def golden_view(name: str, view: View, size: tuple[int, int], *, ascii_only: bool) -> None:
    """Compare what a view shows at a size with that part of its golden."""
    text = "".join(f"{line}\n" for line in text_of(view, size, ascii_only=ascii_only))
    golden(f"{name}.txt", text, f"{size[0]}x{size[1]}", ascii_only=ascii_only)


def read_timeline(source: Source) -> LaunchTimeline:
    """The timeline of a launch, as its probe reads it."""
    read = probe_of(source.kernel).timeline
    assert read is not None
    return read(probe_results.read(source), no_progress)
