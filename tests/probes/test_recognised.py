"""Recognition of a trace's probe if the trace does not name it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from tests.trace.make_older import write_probe, write_ptx, write_unnamed
from tui_probe.cli.main import main
from tui_probe.probekit import recognised
from tui_probe.probekit.measured import analyse_results
from tui_probe.probekit.recognised import analysis_name, set_assumed_probe
from tui_probe.trace.follow import open_trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.trace.make import TraceWriter


@pytest.fixture(autouse=True)
def nothing_told() -> Iterator[None]:
    yield
    set_assumed_probe(None)


NO_SM = 5000
"""A number that no SM has, so that the records are of another probe."""


def probe_in(writer: TraceWriter) -> str | None:
    (kernel,) = open_trace(writer.directory).kernels
    return analysis_name(kernel)


@pytest.mark.parametrize("log", ["old", "new"])
@pytest.mark.parametrize("sections", ["older", "current"])
def test_probe_is_recognised_by_its_file(
    tmp_path: Path, log: Literal["old", "new"], sections: Literal["older", "current"]
) -> None:
    writer = write_unnamed(tmp_path / "t", log=log, sections=sections)
    write_probe(writer, table="block_sched")
    trace = open_trace(writer.directory)
    (kernel,) = trace.kernels
    assert analysis_name(kernel) == "block_sched"
    analyses = [analysis.analysis for analysis in analyse_results(trace, kernel)]
    assert [(analysis.running, analysis.scheduling) for analysis in analyses] == [(200, 20)] * 3


def test_probe_is_recognised_by_its_analysis(tmp_path: Path) -> None:
    writer = write_unnamed(tmp_path / "t")
    write_probe(writer, head='analyze_hook = "tools/block_sched.py"')
    assert probe_in(writer) == "block_sched"


def test_probe_is_recognised_by_the_added_parameter(tmp_path: Path) -> None:
    writer = write_unnamed(tmp_path / "t")
    write_ptx(writer, "param_block_sched", added=["mov.u64 %rd9, %rd8;"])
    assert probe_in(writer) == "block_sched"


def test_probe_is_recognised_by_the_added_instructions(tmp_path: Path) -> None:
    writer = write_unnamed(tmp_path / "t")
    write_ptx(writer, "param_mine")
    assert probe_in(writer) == "block_sched"
    write_ptx(writer, "param_mine", added=["mov.u32 %r9, %smid;"])
    assert probe_in(writer) is None


def test_probe_is_recognised_by_its_maps_and_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = write_unnamed(tmp_path / "t")
    assert probe_in(writer) == "block_sched"
    assert main(["report", str(writer.directory)]) == 0
    report = capsys.readouterr().out
    assert "\nprobe     block_sched, recognized by its map layout and records\n" in report
    assert " 20.00 cycles" in report


def test_report_and_summary_say_how_to_name_a_probe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = write_unnamed(tmp_path / "t", launches=4, first_sm=NO_SM)
    advice = (
        "the trace does not name its probe; its record size (16 B per warp) fits barrier_wait and smem_conflicts: pass"
        " --probe barrier_wait"
    )
    for address in (str(writer.directory), f"{writer.directory}:0"):
        assert main(["report", address]) == 0
        assert " ".join(capsys.readouterr().out.split()).count(advice) == 1


def test_dmat_says_which_maps_a_trace_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = write_unnamed(tmp_path / "t", launches=4)
    assert main(["report", str(writer.directory), "--probe", "dmat"]) == 0
    report = " ".join(capsys.readouterr().out.split())
    assert report.count("dmat needs one map per thread and one map per warp, but the file has 16 B per warp") == 1


def test_not_where_the_records_are_others(tmp_path: Path) -> None:
    writer = write_unnamed(tmp_path / "t")
    write_probe(writer, table="block_sched")
    (next((writer.directory / "kernel").iterdir()) / "kernel.info").write_text("_Z4fillPf\n2\n1\n0,16\n")
    assert probe_in(writer) is None
    writer = write_unnamed(tmp_path / "u")
    write_probe(writer, table="block_sched")
    path = writer.directory / "probe.toml"
    path.write_text(path.read_text().replace("SAVE.u32 {%cycles, %smid};", "SAVE.u64 {%long};"))
    assert probe_in(writer) is None


def test_probe_is_recognised_by_its_name_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recognised, "_MAX_SMS", 0)  # so that no record is of an SM
    writer = write_unnamed(tmp_path / "t")
    assert main(["show", "blocks", f"{writer.directory}:0"]) == 1
    assert "pass --probe barrier_wait" in capsys.readouterr().err
    assert main(["show", "blocks", f"{writer.directory}:0", "--probe", "block_sched"]) == 0
    assert "SM" in capsys.readouterr().out


def test_missing_files_are_reported_and_the_rest_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = write_unnamed(tmp_path / "t", launches=9)
    write_probe(writer, table="block_sched")
    for gone in ("8.250000.bin", "7.250000.bin"):
        (writer.directory / "result" / gone).unlink()
    assert main(["show", "summary", f"{writer.directory}:0"]) == 0
    shown = capsys.readouterr().out
    assert "7 of 9 files in the trace" in shown
    assert "the file no longer exists" not in shown
    assert main(["show", "blocks", f"{writer.directory}:0", "--launch", "8"]) != 0
    error = capsys.readouterr().err
    assert "the file no longer exists" in error
    assert "Errno" not in error
