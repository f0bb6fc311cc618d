"""The end of a run: what is said of it once, and what an empty table says."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_probe.ui.feed import Snapshot


def words_at_end(before: Snapshot, now: Snapshot) -> str:
    """What to say of a run that is only watched, between two snapshots of it: nobody else tells. "" for nothing."""
    if not now.loaded or now.running:
        return ""
    if before.running:
        return "the run has ended"
    return "" if before.loaded else "this run has already ended"


def why_empty(snapshot: Snapshot) -> str:
    """Why there is no kernel."""
    if not snapshot.loaded:
        return "reading the trace"
    if snapshot.running:
        return "waiting for the first kernel"
    return "no kernel was launched; pages 4 and 5 show the program's output (interactive programs need --no-ui)"
