"""The walk through a trace: each line of the log in words, and a result as it is in its file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

import pytest

from tests.trace.make_older import write_probe, write_ptx, write_unnamed
from tui_probe.cli.main import main
from tui_probe.pages.event_log import event_sentence
from tui_probe.pages.views.explain import walk_lines
from tui_probe.trace.events import parse_line
from tui_probe.trace.follow import open_trace

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"[pid] 12", "the process has PID 12; the name of the trace ends with this PID"),
        (b"[init] cmd 4 ./ab garbage", "the command line of the process is: ./ab"),
        (
            b"[mem] cuMemAlloc_v2 2 dptr 10 bytesize 2048",
            "the program called cuMemAlloc_v2 for 2.05 kB of device memory at 0x10: CUDA error 2",
        ),
        (b"[exec] grid 4 1 1 block 64 1 1 shared 0", "a probed launch of 4 blocks of 64 threads"),
        (b"[exec] grid 4 warp  2 probe 16 total 128", "a map of the probe: 4 blocks × 2 warps × 16 bytes = 128 B"),
        (
            b"[kernel] 0 probed-function registers - local 0 shared 0 blocks 8",
            "kernel #0 with the probe needs – registers per thread",
        ),
        (b"[exec] prologue 1 kernel - epilogue 2 ratio 3", None),
        (
            b"[graph] 3 executable 0x5 nodes 2 kernels 1 flags 0 replays 0",
            "graph 3 was instantiated: 2 nodes, 1 of them kernels",
        ),
        (b"[node] 3 1 copy in - after 0 bytes 64", "node 1 of graph 3: copy, after node 0"),
        (b"[graph] 3 replayed 7", "graph 3 was replayed 7 times without the probe"),
        (
            b"[graph] 3 replay 8 time 5 launch 20 count 2 probed 4x2",
            "a probed replay of graph 3: launches 20 to 21",
        ),
        (
            b"[time] graph 3 replay 8 probed ns 4000 for 1 call 5000 idle",
            "a replay of graph 3 with probes took 4.00 \u00b5s",
        ),
        (b"[graph] 3 destroyed", "graph 3 was destroyed"),
        (
            b"[graph] 3 untwinned reason the graph has no kernels code graph-no-kernel",
            "graph 3 is not probed: the graph has no kernels",
        ),
        (b"[exec] gri", "unknown line: truncated, or mixed with another line"),
    ],
)
def test_a_line_in_words(line: bytes, words: str | None) -> None:
    sentence = event_sentence(parse_line(line))
    assert sentence == (words or "milliseconds before, during and after the probed kernel: 1, –, 2")


@pytest.mark.parametrize(("log", "sections"), [("old", "older"), ("new", "current")])
def test_tour_of_an_older_trace(
    tmp_path: Path, log: Literal["old", "new"], sections: Literal["older", "current"]
) -> None:
    writer = write_unnamed(tmp_path / "t", log=log, sections=sections)
    write_probe(writer, table="block_sched")
    write_ptx(writer, "param_block_sched")
    text = "\n".join(walk_lines(open_trace(writer.directory), 100))
    assert "tensor.trace  tensors named by the program (not in this trace)" in text
    assert "result/       records of the probe" in text
    assert "probed.ptx has 4 lines more than pruned.ptx, including 1 parameter" in text
    assert "map 0: 16 bytes per warp, starting at byte 48" in text
    assert ("layout of older systems" in text) == (sections == "older")
    assert "probe: block_sched" in text
    assert "8 blocks, cycles per slot: 200 running, 20 in gaps" in text
    assert max(map(len, text.splitlines())) <= 100


def test_tour_of_an_empty_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "event.log").write_bytes(b"\xff\x00 cut")
    assert main(["explain", str(tmp_path / "t")]) == 0
    shown = capsys.readouterr().out
    assert "no kernel was prepared" in shown
    assert "no result was saved" in shown


def test_tour_as_a_page_of_a_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = write_unnamed(tmp_path / "t", log="new", sections="current")
    write_probe(writer, table="block_sched")
    write_ptx(writer, "param_block_sched")
    assert main(["show", "explain", f"{writer.directory}:0"]) == 0
    shown = capsys.readouterr().out
    assert "Layout of a result file" in shown
    assert "map 0: 16 bytes per warp, starting at byte 48" in shown
    assert main(["show", "explain", f"{writer.directory}:0", "--format", "json"]) == 0
    parts = json.loads(capsys.readouterr().out)["data"]["parts"]
    assert [part["title"] for part in parts][:2] == ["The files of the trace", "event.log in words"]
    assert all(part["lines"] for part in parts)
