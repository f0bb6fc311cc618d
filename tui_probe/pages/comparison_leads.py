"""Where a line of a comparison leads: a page of the kernel of one side that shows what the line is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.errors import ProbeError
from tui_probe.pages.views import kind_of, names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.pages.changes import Change, Pair
    from tui_probe.probekit.kind import Source

_WHOLE = ("summary",)


@dataclass(frozen=True, slots=True)
class Lead:
    """To the first of ``pages`` that has something to show of the kernel or launch of a side, ``A`` or ``B``."""

    letter: str
    source: Source
    pages: Sequence[str]
    about: str
    """What the line is about, in a few words."""


def lead_of_change(pair: Pair, change: Change) -> Lead | None:
    """Of a row, which has figures of both sides: to the second side, since that is what came of a change."""
    return pair.sides and Lead("B", pair.sides[1], change.before.pages, change.before.label)


def lead_of_pair(pair: Pair) -> Lead | None:
    """Of the line of a kernel: to what it is judged by, else to its summary."""
    if pair.lead is not None:
        return lead_of_change(pair, pair.lead)
    return pair.sides and Lead("B", pair.sides[1], _WHOLE, "kernel")


def lead_of_kernel(letter: str, source: Source) -> Lead:
    """Of a line that names a kernel of one side: to its summary."""
    return Lead(letter, source, _WHOLE, "kernel")


def page_of_lead(lead: Lead) -> tuple[str, str]:
    """The page, and ""; where none of them has anything to show "", and why. Reads little."""
    why = ""
    for name in lead.pages:
        if name in names():
            missing = _missing(name, lead.source)
            if missing is None:
                return name, ""
            why = why or missing
    return "", why or "no page shows it"


def _missing(name: str, source: Source) -> str | None:
    try:
        return kind_of(name).missing(source)
    except (ProbeError, OSError) as error:
        return str(error)
