"""Drawings and documents as text, and their goldens."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from rich.cells import cell_len

from tests.golden import golden
from tests.sizes import headings, lost, widest
from tui_probe.draw.spans import to_ascii
from tui_probe.draw.view import Document, View, no_progress
from tui_probe.pages.view_output import text_lines, view_lines
from tui_probe.probekit import probe_results
from tui_probe.probekit.measured import known_probe
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.timelines.launch import LaunchTimeline

SMALL, GOLDEN_SIZE, LARGE = (80, 24), (120, 40), (200, 50)
Shown = Callable[[tuple[int, int], bool], str]


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


def golden_view(name: str, view: View) -> None:
    """Compare a view at one size with its golden, and check the others: see ``golden_sizes``."""
    golden_sizes(
        name,
        lambda size, ascii_only: "".join(f"{line}\n" for line in text_of(view, size, ascii_only=ascii_only)),
        is_drawing=not isinstance(view, Document),
    )


def golden_sizes(name: str, shown: Shown, *, is_drawing: bool) -> None:
    """Compare what ``shown`` returns for ``GOLDEN_SIZE`` with a golden; at other sizes the same cells must be there.

    Of a drawing the title has the same cells, and the larger one is drawn with more marks.
    """
    text = golden_at(name, shown, GOLDEN_SIZE)  # before another size moves the cursor of a drawing
    narrow, wide = (checked(name, shown, size, is_drawing=is_drawing) for size in (SMALL, LARGE))
    for one, wider in pairwise((narrow, text, wide)):
        if is_drawing:
            assert lost(one.partition("\n")[0], wider.partition("\n")[0]) == []
            assert ink(one) < ink(wider)
        else:
            assert lost(one, wider) == []


def golden_at(name: str, shown: Shown, size: tuple[int, int]) -> str:
    """Compare the text of one size, Unicode and ASCII, with the golden, and return the first."""
    part = f"{size[0]}x{size[1]}"
    text = shown(size, False)
    golden(f"{name}.txt", text, part, width=size[0])
    golden(f"{name}.txt", shown(size, True), part, ascii_only=True, width=size[0])
    return text


def checked(name: str, shown: Shown, size: tuple[int, int], *, is_drawing: bool) -> str:
    """Return the text of a size without a golden, after checking all but its cells."""
    text, plain = shown(size, False), shown(size, True)
    assert plain.isascii()
    assert max(widest(text), widest(plain)) <= size[0]
    if not is_drawing:
        assert plain == to_ascii(text)
        if size == SMALL and (columns := headings(text)):
            golden(f"{name}.txt", columns, f"{size[0]}x{size[1]} headings")
    return text


def ink(text: str) -> int:
    """Return how many characters are not blank."""
    return len("".join(text.split()))


def read_timeline(source: ViewSource) -> LaunchTimeline:
    """The timeline of a launch, as its probe reads it."""
    read = known_probe(source.kernel).timeline
    assert read is not None
    return read(probe_results.read_result(source), no_progress)
