"""Every page in every format, against texts that were looked at."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.fixed_probes import fixed_probes
from tests.formats import check_formats
from tests.golden import golden
from tests.pages.example import write_example
from tests.recorded import H200, unpacked
from tests.sizes import golden_widths
from tests.trace.make import TraceWriter
from tui_probe.pages.page_registry import page_names, report_lines
from tui_probe.pages.run_report import run_report
from tui_probe.probekit.page_kinds import Format
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Trace
from tui_probe.verdicts.kernel_snapshot import kernel_snapshot
from tui_probe.verdicts.run_outcome import head_record, largest_loss_text

with fixed_probes():
    PAGES = page_names()
WITHOUT_TABLE = ("summary", "results", "events", "blocks")
"""The pages whose text says it in other ways: only Markdown has their columns as a table."""


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    monkeypatch.chdir(tmp_path)
    write_example(Path("example"))
    return open_trace("example")


@pytest.fixture
def simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    monkeypatch.chdir(tmp_path)
    write_example(Path("example"), simulated=True)
    return open_trace("example")


def page_text(trace: Trace, page: str, form: Format = "table", **options: Any) -> str:
    return "".join(f"{line}\n" for line in report_lines(trace, page, form, **options))


def test_the_report_of_a_run(example: Trace) -> None:
    golden_widths("run.txt", lambda width, ascii_only: run_report(example, width=width, ascii_only=ascii_only))


@pytest.mark.parametrize("page", ["kernels", "summary", "launches", "blocks"])
def test_pages_as_tables(example: Trace, page: str) -> None:
    golden_widths(f"{page}.txt", lambda width, ascii_only: page_text(example, page, width=width, ascii_only=ascii_only))


@pytest.mark.parametrize("page", PAGES)
def test_pages_as_json(example: Trace, page: str) -> None:
    golden(f"{page}.json", page_text(example, page, "json"))


@pytest.mark.parametrize("page", PAGES)
def test_pages_have_the_same_cells_in_all_formats(example: Trace, page: str) -> None:
    check_formats(lambda form: page_text(example, page, form, width=400), page, has_table=page not in WITHOUT_TABLE)


@pytest.mark.parametrize("page", WITHOUT_TABLE)
def test_pages_without_a_table_as_markdown(example: Trace, page: str) -> None:
    golden(f"{page}.md", page_text(example, page, "md"))


def test_the_page_of_events_is_the_log(example: Trace) -> None:
    assert page_text(example, "events").encode() == (example.directory / "event.log").read_bytes()


@pytest.mark.parametrize("page", PAGES)
def test_json_is_one_document_of_the_schema(example: Trace, page: str) -> None:
    document = json.loads(page_text(example, page, "json"))
    assert (document["schema"], document["version"], document["page"]) == ("tui-probe.report", 2, page)
    assert document["run"]["simulated"] is False
    without = ("ranges", "sums", "graphs", "lines")
    assert bool(document[page]) is (page not in without), "the example is one of block_sched, without ranges and graphs"


def test_json_has_the_documented_fields_of_a_kernel(example: Trace) -> None:
    probed, matmul, skipped, failed, excluded = json.loads(page_text(example, "kernels", "json"))["kernels"]
    documented = {
        "index", "name", "demangled", "status", "reason", "launches", "grid", "block", "registers_pruned",
        "registers_probed", "spills_pruned", "spills_probed", "slowdown", "probe_bytes",
    }  # fmt: skip
    for kernel in (probed, matmul, skipped, failed, excluded):
        assert documented <= kernel.keys()
    assert probed["slowdown"] == pytest.approx(1.2)
    assert (matmul["slowdown"], matmul["grid"], matmul["block"], matmul["spills_probed"]) == (
        None,
        [8, 8, 1],
        [16, 16, 1],
        16,
    )
    assert skipped["registers_probed"] is skipped["spills_pruned"] is skipped["probe_bytes"] is None
    assert [k["status"] for k in (probed, skipped, failed, excluded)] == ["probed", "skipped", "failed", "excluded"]


def test_csv_has_the_same_values(example: Trace) -> None:
    kernels = json.loads(page_text(example, "kernels", "json"))["kernels"]
    rows = list(csv.DictReader(io.StringIO(page_text(example, "kernels", "csv"))))
    assert [row["name"] for row in rows] == [kernel["name"] for kernel in kernels]
    assert rows[1]["grid"] == "8x8x1"
    assert rows[1]["grid_varies"] == "true"
    assert rows[2]["registers_probed"] == ""


def test_blocks_in_json_add_up(example: Trace) -> None:
    first, *_, damaged = json.loads(page_text(example, "blocks", "json"))["blocks"]
    assert first["running"] + first["scheduling"] + first["ramp"] + first["tail"] == pytest.approx(first["span"])
    assert sum(first["sms"]["blocks"]) == first["blocks"] == 24
    assert damaged["running"] is damaged["sms"] is None
    assert "the file is truncated" in damaged["problem"]


def test_simulated_runs_are_labelled_and_show_no_times(simulated: Trace) -> None:
    text = run_report(simulated, width=120)
    assert "simulated GPU: clocks and cycles come from a model" in text
    assert "7 results, simulated" in text
    assert "µs" not in text
    for kernel in json.loads(page_text(simulated, "kernels", "json"))["kernels"]:
        assert kernel["slowdown"] is kernel["time_ms"] is kernel["time_probed_ms"] is None
    blocks = json.loads(page_text(simulated, "blocks", "json"))
    assert blocks["run"]["simulated"]
    assert all(result["simulated"] for result in blocks["blocks"])


def test_a_trace_without_kernels(tmp_path: Path) -> None:
    TraceWriter(tmp_path / "t").start()
    trace = open_trace(tmp_path / "t")
    assert "No kernel was launched." in run_report(trace)
    assert "No kernel has block schedules: run with -p block_sched" in page_text(trace, "blocks")
    assert json.loads(page_text(trace, "kernels", "json"))["kernels"] == []
    assert len(page_text(trace, "launches").splitlines()) == len(page_text(trace, "kernels").splitlines())


@pytest.mark.parametrize("log", [b"", b"[init] pi", bytes(range(256))])
def test_a_log_without_its_beginning_is_not_taken_for_a_run_without_kernels(tmp_path: Path, log: bytes) -> None:
    (tmp_path / "event.log").write_bytes(log)
    assert "event.log is empty, truncated or damaged" in run_report(open_trace(tmp_path))


def test_a_run_without_an_assembler_says_what_is_missing(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace")
    writer.kernel(0, "fill", ptxas=False)
    writer.launch(0)
    writer.run_json(toolchain={"ptxas": None, "version": None})
    report = run_report(open_trace(writer.directory), width=200)
    assert "no ptxas: spills are unknown and register counts come from the driver" in report
    writer.run_json()
    assert "no ptxas" not in run_report(open_trace(writer.directory), width=200)


def test_nothing_in_a_trace_reaches_the_terminal_as_a_control_character(tmp_path: Path) -> None:
    evil = "evil\x1b[2J\x1b]0;title\x07\u202ename"
    writer = TraceWriter(tmp_path / "t")
    writer.start(command=f"./{evil}", device=evil)
    writer.lines(f"[kernel] 0 skipped registers - local - shared - blocks - name {evil} reason {evil}")
    writer.pass_through(0, evil)
    trace = open_trace(writer.directory)
    texts = [run_report(trace), *(page_text(trace, page, form) for page in PAGES for form in ("table", "md"))]
    for text in texts:
        assert all(character == "\n" or character.isprintable() for character in text)


def test_launches_that_the_log_does_not_place(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.lines("[exec] grid 4 1 1 block 32 1 1 shared 0", "[exec] failed 700")
    trace = open_trace(writer.directory)
    (launch,) = json.loads(page_text(trace, "launches", "json"))["launches"]
    assert (launch["kernel"], launch["name"], launch["launch"], launch["status"]) == (None, "?", None, 700)
    assert "probed, failed with CUDA error 700" in page_text(trace, "launches", width=120)


def test_the_head_says_where_the_log_breaks_off(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace")
    writer.start()
    writer.kernel(0, "fill")
    writer.launch(0)
    size = len(writer.log.read_bytes())
    writer.launch(0)
    (writer.directory / "result" / "0.001001.bin").write_bytes(b"a result that the log names further on")
    writer.exit()
    cut = "event.log is truncated and does not name 1 result file in result/; later events are not counted"
    assert cut not in run_report(open_trace(writer.directory), width=200), "nothing says that the program ended"
    writer.run_json()
    assert cut not in run_report(open_trace(writer.directory), width=200)
    writer.log.write_bytes(writer.log.read_bytes()[:size])
    assert f"log       {cut}" in run_report(open_trace(writer.directory), width=200)
    assert head_record(open_trace(writer.directory))["run"]["log_cut"]
    writer.run_json(exit_status=None, signal=9)
    assert cut not in run_report(open_trace(writer.directory), width=200), "killed, it could not write the last line"


def test_report_names_damaged_run_json_and_truncated_log(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace")
    writer.start()
    writer.kernel(0, "fill")
    writer.launch(0)
    whole_lines = writer.log.read_bytes()
    run_json = writer.directory / "run.json"
    run_json.write_text('{"version": 1, "command": [')
    report = run_report(open_trace(writer.directory), width=200)
    assert "run.json  not valid JSON" in report
    assert "outcome   ended, exit status unknown: run.json is damaged" in report
    assert head_record(open_trace(writer.directory))["run"]["run_json_problem"].startswith("not valid JSON")
    assert "event.log is truncated" not in report, "a killed program's log ends after any line"
    writer.log.write_bytes(whole_lines[:-5])
    trace = open_trace(writer.directory)
    assert "log       event.log is truncated in the middle of a line" in run_report(trace, width=200)
    assert head_record(trace)["run"]["log_cut"]
    writer.run_json(exit_status=None, signal=9)
    report = run_report(open_trace(writer.directory), width=200)
    assert "run.json  " not in report
    assert "event.log is truncated" not in report, "killed, it may stop inside a line"


def test_report_names_truncated_results_at_its_head(tmp_path: Path) -> None:
    folder = unpacked(H200 / "demo", tmp_path)
    trace = open_trace(folder)
    path = trace.results.path(3)
    assert path is not None
    assert head_record(trace)["run"]["results_truncated"] == []
    assert "no shares" not in run_report(trace, width=200)
    path.write_bytes(path.read_bytes()[:-20])
    trace = open_trace(folder)
    head, _, below = run_report(trace, width=200).partition("Where to look first")
    assert f"results   1 of 7 results is truncated: result/{path.name} has 8 220 of 8 240 bytes" in head
    assert "no shares: the newest result of #3 saxpy is truncated" in below.partition("Probed kernels")[0]
    assert head_record(trace)["run"]["results_truncated"] == [f"result/{path.name}"]
    assert trace.damage == ("1 result is truncated",)


def test_head_counts_results_unsaved_at_end(tmp_path: Path) -> None:
    unsaved = "at least 2 results not saved: the process was killed, or ended by a call such as _exit"
    writer = TraceWriter(tmp_path / "trace")
    writer.start()
    writer.kernel(0, "fill")
    for _ in range(4):
        writer.launch(0)
    (writer.directory / "result" / "0.001001.bin").write_bytes(b"a result that the log does not name")
    (writer.directory / "result" / ".0.001002.bin").write_bytes(b"half a re")
    writer.launch(0, status=1)
    writer.pass_through(0, "launches not sampled")
    writer.save(0, 0, b"a result")
    assert "not saved" not in run_report(open_trace(writer.directory), width=200), "no one says that it has ended"
    for fields in ({"exit_status": 0}, {"exit_status": None, "signal": 9}, {"exit_status": None, "pid": 4_000_000}):
        writer.run_json(**fields)
        assert unsaved in run_report(open_trace(writer.directory), width=200)
        assert head_record(open_trace(writer.directory))["run"]["results_unsaved"] == 2
    writer.exit(dropped=3)
    assert "not saved" not in run_report(open_trace(writer.directory), width=200), "its last line counts them"
    assert head_record(open_trace(writer.directory))["run"]["results_unsaved"] is None


def test_the_head_says_why_results_stopped_until_they_go_on(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace")
    writer.kernel(0, "fill")
    writer.lines("[exec] save-paused disk is nearly full (less than 2 GiB free): 9 of 99 bytes are free")
    assert "no further results were saved: disk is nearly full (less than 2 GiB free)\n" in run_report(
        open_trace(writer.directory)
    )
    writer.lines("[exec] save-resumed 50 of 99 bytes are free: results are saved again")
    assert "no further results were saved" not in run_report(open_trace(writer.directory))
    writer.lines("[exec] save-paused trace is full (9 bytes): allow more with --max-trace-bytes")
    report = run_report(open_trace(writer.directory))
    assert "no further results were saved: trace is full (9 bytes)\n" in report
    assert "allow more with --max-trace-bytes" in report


def test_the_head_says_what_the_budgets_left_out(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace")
    writer.kernel(0, "fill")
    writer.launch(0)
    writer.lines(
        "[budget] result-files reached limit 1 used 1: allow more with --max-result-files",
        "[budget] log-bytes reached limit 2000 used 2001: allow more with --max-log-bytes",
        "[budget] unlisted kernel 0 launches 19999",
    )
    report = " ".join(run_report(open_trace(writer.directory)).split())
    assert "the run reached its limit of 1 result file; raise with --max-result-files" in report
    assert "event.log reached 2.00 kB: later launches are counted but not listed" in report
    assert "kept 0 of 20 000 launches of fill" in report
    assert "20 000 launches" in report
    assert head_record(open_trace(writer.directory))["run"]["budgets"] == {
        "reached": [
            {"name": "result-files", "reached": True, "limit": 1, "used": 1, "option": "--max-result-files"},
            {"name": "log-bytes", "reached": True, "limit": 2000, "used": 2001, "option": "--max-log-bytes"},
        ],
        "kept": {"kernel": "fill", "results": 0, "launches": 20_000, "other_kernels": 0},
    }


def test_data_of_a_run_within_its_budgets_say_so(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace")
    writer.kernel(0, "fill")
    writer.launch(0)
    assert head_record(open_trace(writer.directory))["run"]["budgets"] == {"reached": [], "kept": None}


def test_the_state_line_says_of_which_kernel_least_was_kept(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace")
    for index, name in enumerate(("fill", "copy")):
        writer.kernel(index, name)
        writer.launch(index)
    writer.lines("[budget] unlisted kernel 1 launches 19999")
    rows = [kernel_snapshot(kernel, None) for kernel in open_trace(writer.directory).kernels]
    assert largest_loss_text(rows) == "kept 0 of 20 000 launches of copy"
    assert largest_loss_text([]) == ""
