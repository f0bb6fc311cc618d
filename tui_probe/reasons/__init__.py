"""Reasons for unprobed kernels and launches: codes, sentences and advice, shared by hook, engine and reports."""

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
