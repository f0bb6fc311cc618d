"""Where the first NaN or infinity was stored, how many there were, and what was not looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import NanCheck


def findings(of: ProbeResult, found: NanCheck) -> Iterator[Finding]:
    """The first, all, and what nothing is known of."""
    del of
    first = found.first
    if first is None:
        words = "no NaN and no infinity was stored"
        yield Finding("stores", "stores", words, "lines", values={"stores": found.stores})
    else:
        where = f"block ({','.join(map(str, first.block))}) thread ({','.join(map(str, first.thread))})"
        words = f"{first.words} stored at {place(first.line, first.source)} by {where}"
        values = {"address": first.address, "stores": found.stores}
        yield Finding("first", f"first {first.words.split()[0]}", words, "lines", first.line, True, values=values)
        words = f"{units.count(found.stores)} of NaN or infinity, counted by warp"
        yield Finding("stores", "stores", words, "lines", values={"stores": found.stores})
    if found.unchecked:
        words = f"{units.counted(len(found.unchecked), 'store instruction')}: the type of what they store is unknown"
        yield Finding("unchecked", "not looked at", words, "lines", found.unchecked[0].line)
