"""The first place to look at in a launch with results of several probes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.recorded import H200
from tui_probe.pages import hotspot as module
from tui_probe.pages.hotspot import find_hotspot
from tui_probe.probekit.finding import Finding
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.findings import ResultFindings

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN = Finding("access", "worst access", "st.global", page="lines", line=16)
LOUD = Finding("tail", "tail", "SMs run out of blocks", page="timeline", stands_out=True, sm=3)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ViewSource]:
    """A kernel about which the probes, that of the page first, say this."""

    def of(*said: ResultFindings) -> ViewSource:
        monkeypatch.setattr(module, "launch_findings", lambda _: said[0] if said else None)
        monkeypatch.setattr(module, "findings_by_probe", lambda _: list(said))
        trace = open_trace(H200 / "demo")
        return ViewSource(trace, trace.kernels[0])

    return of


def test_outlier_comes_first_for_any_probe(found: Callable[..., ViewSource]) -> None:
    place = find_hotspot(found(ResultFindings("one", 0, False, (PLAIN,)), ResultFindings("two", 0, False, (LOUD,))))
    assert place.worst is not None
    assert place.line is not None
    assert (place.worst.page, place.worst.spot.sm, place.worst.text) == ("timeline", 3, "tail: SMs run out of blocks")
    assert (place.line.spot.ptx, place.reason) == ((16,), "")


def test_page_hotspot_is_used_without_outliers(found: Callable[..., ViewSource]) -> None:
    other = Finding("access", "most bytes", "ld.global", page="memory", line=9)
    place = find_hotspot(found(ResultFindings("one", 0, False, (PLAIN,)), ResultFindings("two", 0, False, (other,))))
    assert place.worst is not None
    assert place.worst.page == "lines"


def test_a_line_without_a_page_is_shown_in_the_code(found: Callable[..., ViewSource]) -> None:
    place = find_hotspot(found(ResultFindings("one", 0, False, (Finding("nan", "first NaN", "div", line=5),))))
    assert place.worst is not None
    assert (place.worst.page, place.worst.spot.ptx) == ("ptx", (5,))


def test_unreadable_result_is_reported_without_another_hotspot(found: Callable[..., ViewSource]) -> None:
    broken = ResultFindings("one", 0, False, problem="result/0.bin is cut", unread=True)
    assert find_hotspot(found(broken)).reason == "the result could not be read: result/0.bin is cut"
    assert find_hotspot(found(broken, ResultFindings("two", 0, False, (LOUD,)))).reason == ""
