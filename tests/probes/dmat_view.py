"""Opening the view of a trace, and having it drawn as a screen does."""

from __future__ import annotations

from pathlib import Path

from tui_probe.draw.spans import plain
from tui_probe.draw.view import no_progress
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probes.dmat import DMAT
from tui_probe.probes.dmat.view import Dmat
from tui_probe.trace.follow import open_trace


def opened(directory: Path) -> Dmat:
    trace = open_trace(directory)
    source = ViewSource(trace, trace.kernels[0])
    assert DMAT.missing_reason(source) is None
    view = DMAT.open(source, no_progress)
    assert isinstance(view, Dmat)
    return view


def prepared(view: Dmat, width: int = 120, height: int = 40) -> Dmat:
    for _ in range(3):
        if (work := view.prepare(width, height)) is not None:
            work()
    return view


def drawn(view: Dmat, width: int = 120, height: int = 40, *, ascii_only: bool = False) -> list[str]:
    prepared(view, width, height)
    return [plain(line).rstrip() for line in view.draw(width, height, ascii_only=ascii_only)]
