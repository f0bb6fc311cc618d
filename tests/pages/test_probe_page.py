"""The page of a probe's own file: which table put which line into a kernel."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.pages.measured_example import COALESCED, NEVER, STORED, STRIDED, write_measured
from tui_probe.cli.main import main
from tui_probe.draw.spans import plain
from tui_probe.draw.view import Spot, no_progress
from tui_probe.pages.views import kind_of
from tui_probe.pages.views.probe import ProbeSource
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.follow import open_trace

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.model import Trace

SITES = (COALESCED, STRIDED, NEVER, STORED)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return write_measured(tmp_path / "t", "dmat")


def opened(trace: Trace, index: int = 0) -> ProbeSource:
    kernel = trace.kernels[index]
    kind = kind_of("probe")
    assert kind.missing_reason(ViewSource(trace, kernel)) is None
    view = kind.open(ViewSource(trace, kernel), no_progress)
    assert isinstance(view, ProbeSource)
    return view


def inserted(trace: Trace, words: str, time: int = 1) -> int:
    """The line of ``probed.ptx``, counted from 1, that has these words for that many times."""
    path = trace.kernels[0].file("probed.ptx")
    assert path is not None
    numbers = [number for number, line in enumerate(path.read_text().split("\n"), 1) if words in line]
    return numbers[time - 1]


def told(view: ProbeSource, spot: Spot) -> str | None:
    place = view.place_of_spot(spot, 100)
    return None if place is None else plain(view.lines(100)[place]).split("]")[0].split("[")[1]


def test_each_line_comes_from_the_table_that_put_it_there(trace: Trace) -> None:
    view = opened(trace)
    assert told(view, Spot(probed_line=inserted(trace, "%globaltimer"))) == "probe.entry"
    for time in range(1, 5):
        assert told(view, Spot(probed_line=inserted(trace, "st.global.cs.v2.b64", time))) == "probe.access"
    assert told(view, Spot(probed_line=inserted(trace, "tp_map_dmat,"))) == "map.dmat"
    own = Spot(probed_line=inserted(trace, "st.global.u32 [%tp__address], %tp__index"))
    assert told(view, own) is None
    assert "was added by the engine" in view.missing_reason(own)


def test_lines_of_the_kernel_lead_to_the_table_that_is_there_and_back(trace: Trace) -> None:
    view = opened(trace)
    place = view.place_of(STRIDED, 100)
    assert place is not None
    assert plain(view.lines(100)[place]).endswith("[probe.access]  ▸ at 4 places")
    assert view.spot(place + 1, 100) == Spot(SITES)
    assert view.line_facts(place, 100) == [f"probe.access: at 4 places, first PTX line {COALESCED}"]
    assert view.place_of(STRIDED + 1, 100) is None
    assert view.missing_reason(Spot((STRIDED + 1,))) == f"the probe was not inserted at PTX line {STRIDED + 1}"


def test_the_copy_in_the_trace_comes_before_the_known_probe(trace: Trace) -> None:
    known = opened(trace).texts[0]
    (trace.directory / "probe.toml").write_text("# as it was used\n" + "\n".join(known.lines))
    text = opened(open_trace(trace.directory)).texts[0]
    assert (text.path, text.lines[0]) == (trace.directory / "probe.toml", "# as it was used")
    (trace.directory / "probe.toml").write_text("[probe.access]\nnothing = that is known\n")
    damaged = opened(open_trace(trace.directory))
    assert damaged.texts[0].parts[0].point is None
    assert damaged.place_of(STRIDED, 100) is None


def test_recorded_sites_are_used(trace: Trace) -> None:
    folder = trace.kernels[0].folder
    assert folder is not None
    site = {"line": STRIDED, "at": "instruction", "points": ["access"], "opcode": "ld.global.f32", "class": "load"}
    probe = {"probe": "dmat", "way": "ptx", "sites": [site], "maps": {}, "unchecked": []}
    (folder / "sites.json").write_text(json.dumps({"version": 1, "files": [], "probes": [probe]}))
    view = opened(open_trace(trace.directory))
    assert (view.place_of(COALESCED, 100), view.spot(view.place_of(STRIDED, 100) or 0, 100)) == (None, Spot((STRIDED,)))


def test_text_and_data(trace: Trace, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "probe", f"{trace.directory}:0", "--width", "90"]) == 0
    assert "[probe.access]  ▸ at 4 places" in capsys.readouterr().out
    assert main(["show", "probe", f"{trace.directory}:0", "--format", "json"]) == 0
    (probe,) = json.loads(capsys.readouterr().out)["data"]["probes"]
    (access,) = [table for table in probe["tables"] if table["table"] == "probe.access"]
    assert (probe["probe"], access["sites"]) == ("dmat", list(SITES))
    assert probe["text"].split("\n")[access["line"] - 1] == "[probe.access]"
    assert main(["show", "probe", f"{trace.directory}:0", "--format", "csv"]) == 0
    assert "dmat" in capsys.readouterr().out


def test_a_kernel_that_was_not_probed_says_so(tmp_path: Path) -> None:
    from tests.ui.synthetic import example

    trace = open_trace(example(tmp_path / "t").directory)
    assert (
        kind_of("probe").missing_reason(ViewSource(trace, trace.kernels[3]))
        == "the kernel was not probed: no PTX in image"
    )
