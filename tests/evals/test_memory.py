"""Maximum probe memory next to the memory of the program, by model and probe."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tui_probe
from tests.golden import golden
from tests.trace.make import TraceWriter
from tui_probe.cli.main import main
from tui_probe.draw.spans import plain
from tui_probe.errors import TraceError
from tui_probe.evals.answer import AnswerDocument
from tui_probe.evals.inputs import CollectedRun, write_collected

SIZED = "only the size of the records was computed code only-sized"
COUNTED = "the records were counted, not saved code only-counted"
ALLOCATE = "[mem] cuMemAlloc_v2 0 dptr {address:x} bytesize {size}"


def write(directory: Path, probe: str, sizes: tuple[int, ...], reason: str = SIZED, said: str = "") -> Path:
    """A program whose kernels take that many bytes, after others that were launched while it warmed up."""
    writer = TraceWriter(directory)
    writer.start(device="NVIDIA H200", command="models.py")
    writer.lines(
        ALLOCATE.format(address=0x7000, size=3000),
        ALLOCATE.format(address=0x9000, size=2000),
        "[mem] cuMemFree_v2 0 dptr 7000",
        ALLOCATE.format(address=0x7000, size=1000),
    )
    writer.kernel(0, "warm_up", "skipped", reason="recording is switched off code switched-off")
    writer.pass_through(0, "recording is switched off code switched-off")
    writer.kernel(1, "block")
    for size in sizes:
        writer.size(1, size, reason, device=size + 100)
    writer.exit()
    writer.run_json(probe=probe)
    (directory / "stdout.log").write_text(f"words\n{said}\n")
    return directory


def study(folder: Path) -> Path:
    write(folder / "llama8b-bs32.block_sched", "block_sched", (64, 4096, 2048), said="max memory: 1000000")
    write(folder / "llama8b-bs32.dmat", "dmat", (8_000_000, 16), COUNTED, said="max memory: 1000000")
    write(folder / "resnet-bs32.block_sched", "block_sched", (640,), said="max memory: 64000")
    names = [path.name for path in sorted(folder.iterdir())]
    write_collected(folder, {name: CollectedRun(name, "tui-probe run") for name in names})
    return folder


def test_the_largest_launch_counts(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("memory", study(tmp_path))
    table = answer.tables["memory"]
    assert table["model"].tolist() == ["llama8b-bs32", "llama8b-bs32", "resnet-bs32"]
    assert table["probe_bytes"].tolist() == [4096, 8_000_000, 640]
    assert table["device_bytes"].tolist() == [4196, 8_000_100, 740]
    assert table["original"].tolist() == [1_000_000, 1_000_000, 64_000]
    assert table["ratio"].tolist() == [0.004096, 8.0, 0.01]
    assert table["how"].tolist() == ["sized", "counted", "sized"]
    assert table["kernels"].tolist() == [1, 1, 1], "those of the warm-up do not count"
    assert answer.notes == []


def test_memory_text(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("memory", study(tmp_path))
    text = "\n".join(plain(line).rstrip() for line in AnswerDocument(answer).lines(100)) + "\n"
    golden("memory.txt", text, width=100)


def test_without_a_word_of_the_program_its_allocations_count(tmp_path: Path) -> None:
    answer = tui_probe.evaluate("memory", write(tmp_path / "t", "block_sched", (64,)))
    assert answer.tables["memory"]["original"].tolist() == [5000], "the most at the same time"
    assert "“original” is the peak of its allocations" in answer.notes[0]


def test_several_probes_by_turns(tmp_path: Path) -> None:
    """Each probe has launches of its own in one trace; a kernel that only one can have counts for that one."""
    writer = TraceWriter(tmp_path / "model")
    writer.start()
    for index in range(2):
        writer.kernel(index, f"kernel_{index}")
        for probe in ("block_sched", "dmat"):
            outcome = "skipped" if (index, probe) == (1, "dmat") else "probed"
            writer.lines(
                f"[probing] {index} {outcome} registers 32 local 0 shared 0 blocks 8 probe {probe} reason"
                f" {'no PTX in image code no-ptx' if outcome == 'skipped' else '-'}"
            )
    writer.size(0, 64, SIZED, device=128, probe="block_sched")
    writer.size(0, 7000, COUNTED, device=8000, probe="dmat")
    writer.size(1, 96, SIZED, device=256, probe="block_sched")
    writer.size(0, 640, COUNTED, device=8192, probe="dmat")
    writer.run_json()
    (tmp_path / "model" / "stdout.log").write_text("max memory: 1000\n")
    table = tui_probe.evaluate("memory", tmp_path / "model").tables["memory"]
    assert table["model"].tolist() == ["model", "model"]
    assert table["probe"].tolist() == ["block_sched", "dmat"]
    assert table["probe_bytes"].tolist() == [96, 7000]
    assert table["device_bytes"].tolist() == [256, 8192]
    assert table["how"].tolist() == ["sized", "counted"]
    assert table["kernels_sized"].tolist() == [2, 1]


def test_collected_on_the_simulated_gpu(
    tmp_path: Path, natives: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TUI_PROBE_NATIVE", str(natives))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    assert main(["eval", "memory", "--run", "--sim", "--out", str(tmp_path / "out"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["tables"]["memory"]
    assert [(row["model"], row["probe"], row["how"]) for row in rows] == [
        ("fill", "block_sched", "sized"),
        ("fill", "gmem_bytes", "sized"),
        ("fill", "tensorop_count", "sized"),
        ("fill", "dmat", "counted"),
    ]
    assert all(row["probe_bytes"] > 0 for row in rows)


def test_probed_launches_count_with_a_word_of_doubt(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.kernel(0, "probed")
    writer.kernel(1, "closed", "skipped", reason="no PTX in image code no-ptx")
    writer.launch(0, (8, 1, 1), (128, 1, 1))
    writer.pass_through(1, "no PTX in image code no-ptx")
    writer.run_json()
    answer = tui_probe.evaluate("memory", tmp_path / "t")
    (row,) = answer.tables["memory"].records()
    assert (row["probe_bytes"], row["how"], row["original"], row["ratio"]) == (512, "probed", None, None)
    assert np.isnan(answer.tables["memory"]["device_bytes"]).all()
    assert [note.partition(": ")[2] for note in answer.notes] == [
        "1 of 2 kernels have no probe and are not included",
        "only probed launches are included, and a reached budget drops records; to cover all launches, use run"
        " --memusage",
    ]


def test_nothing_sized_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(
        TraceError,
        match=r"no launch reports the probe memory of block_sched; run with --memusage.* tui-probe eval memory --run",
    ):
        tui_probe.evaluate("memory", write(tmp_path / "t", "block_sched", ()))
