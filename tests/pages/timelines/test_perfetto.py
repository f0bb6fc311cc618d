"""Exported timelines are valid trace events, and hold what the launch held."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.pages.example import write_example
from tests.pages.timelines import planted
from tests.pages.timelines.drawing import read_timeline
from tui_probe.cli.main import main
from tui_probe.pages.view_output import write_launches, write_timeline
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.follow import open_trace

RECORDED = Path(__file__).parents[2] / "data" / "h200"
REQUIRED = {
    "X": {"name", "cat", "ts", "dur", "pid", "tid", "args"},
    "C": {"name", "ts", "pid", "args"},
    "M": {"name", "pid", "args"},
    "i": {"name", "cat", "s", "ts", "pid", "tid", "args"},
}
"""Keys of the phases that are used, as the trace event format asks for them."""


def checked(path: Path, count: int) -> dict[str, Any]:
    with path.open() as file:
        document: dict[str, Any] = json.load(file, parse_constant=pytest.fail)  # NaN is not JSON
    events = document["traceEvents"]
    assert len(events) == count
    named = {(event["name"], event["pid"], event.get("tid")) for event in of_phase(document, "M")}
    assert len(named) == len(of_phase(document, "M")), "no track is named twice"
    for event in of_phase(document, "X") + of_phase(document, "i"):
        assert ("process_name", event["pid"], None) in named
        assert ("thread_name", event["pid"], event["tid"]) in named
    for event in of_phase(document, "C"):
        assert ("process_name", event["pid"], None) in named
        assert all(isinstance(value, int | float) for value in event["args"].values())
    for event in events:
        assert event.keys() >= REQUIRED[event["ph"]]
        assert isinstance(event["pid"], int)
        assert isinstance(event.get("tid", 0), int)
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0
    return document


def of_phase(document: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    return [event for event in document["traceEvents"] if event["ph"] == phase]


def test_blocks_are_complete_events_on_their_sm_and_slot(tmp_path: Path) -> None:
    launch = read_timeline(planted.write_planted(tmp_path / "t", simulated=False))
    document = checked(tmp_path / "out.json", write_timeline(tmp_path / "out.json", launch))
    blocks = of_phase(document, "X")
    assert sorted(event["args"]["block"] for event in blocks) == list(range(50))
    straggler = max(blocks, key=lambda event: float(event["dur"]))
    assert (straggler["name"], straggler["pid"]) == (f"block {planted.STRAGGLER}", planted.STRAGGLER_SM + 1)
    assert straggler["dur"] == pytest.approx(planted.STRAGGLER_CYCLES / 1980)
    assert document["otherData"]["time"] == "cycles at 1.980 GHz, the device's highest clock"
    rows = defaultdict(list)
    for event in blocks:
        rows[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert len(rows) == 10
    for events in rows.values():
        assert all(a[1] <= b[0] + 1e-9 for a, b in pairwise(sorted(events)))
    names = {
        event["pid"]: event["args"]["name"] for event in of_phase(document, "M") if event["name"] == "process_name"
    }
    assert names[planted.IDLE_SM + 1] == "SM 3"


def test_the_counter_tells_how_many_run(tmp_path: Path) -> None:
    launch = read_timeline(planted.write_planted(tmp_path / "t"))
    document = checked(tmp_path / "out.json", write_timeline(tmp_path / "out.json", launch))
    counts = [(round(event["ts"] * 1e3), event["args"]["running"]) for event in of_phase(document, "C")]
    assert counts[:3] == [(0, 10), (planted.CYCLES, 0), (planted.CYCLES + planted.GAP, 10)]
    assert counts[-2:] == [(planted.END, 1), (planted.SPAN, 0)]
    assert document["otherData"]["time"] == "cycles: the clock rate is unknown, so 1 ns in this file stands for 1 cycle"
    assert document["otherData"]["simulated"] is True


def test_warps_have_a_thread_each(tmp_path: Path) -> None:
    trace = open_trace(RECORDED / "torch_compile")
    launch = read_timeline(ViewSource(trace, trace.kernels[4]))
    document = checked(tmp_path / "out.json", write_timeline(tmp_path / "out.json", launch, warps=True))
    warps = of_phase(document, "X")
    assert len(warps) == 1024
    assert {event["args"]["warp"] for event in warps} == {0, 1}
    assert max(event["args"]["running"] for event in of_phase(document, "C")) <= 1024


def test_from_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    planted.write_planted(tmp_path / "t")
    out = tmp_path / "out.json"
    assert main(["show", "timeline", str(tmp_path / "t"), "--do", "level,level", "--perfetto", str(out)]) == 0
    captured = capfd.readouterr()
    assert captured.out == ""
    count = len(json.loads(out.read_text())["traceEvents"])
    assert f"written: {out}, {count} events" in captured.err
    assert len(of_phase(checked(out, count), "X")) == 100, "warps, since they are shown"
    assert main(["show", "launches", str(tmp_path / "t"), "--perfetto", str(out)]) == 0
    assert len(of_phase(json.loads(out.read_text()), "i")) == 1
    assert main(["show", "blocks", str(tmp_path / "t"), "--perfetto", str(out)]) == 2
    assert "has no trace events" in capfd.readouterr().err


def test_launches_are_instants_on_their_stream(tmp_path: Path) -> None:
    write_example(tmp_path / "t")
    trace = open_trace(tmp_path / "t")
    document = checked(tmp_path / "out.json", write_launches(tmp_path / "out.json", trace))
    instants = of_phase(document, "i")
    timed = [launch for launch in trace.launches if launch.time_ns is not None]
    assert [event["args"]["launch"] for event in instants] == [launch.number for launch in timed]
    assert instants[1]["ts"] - instants[0]["ts"] == pytest.approx(1.0)
    skipped = next(event for event in instants if event["name"].startswith("sm90_xmma"))
    assert (skipped["args"]["probed"], skipped["args"]["reason"]) == (False, "no PTX in image")
