"""Why something was not probed: codes with a sentence and advice, which hook, engine and reports have in common."""

from __future__ import annotations

from tui_probe.reasons.reason import (
    ListedReason,
    Reason,
    advice_on,
    because,
    because_of_file,
    listed_reasons,
    read_reason,
)

__all__ = ["ListedReason", "Reason", "advice_on", "because", "because_of_file", "listed_reasons", "read_reason"]
