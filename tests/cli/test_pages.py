"""One name, one meaning: pages of traces and of kernels for show, report and the screen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pages.example import write_example
from tui_probe.cli import arguments
from tui_probe.cli.main import main
from tui_probe.cli.text_report import report_after_run
from tui_probe.launcher.run_traces import Outcome
from tui_probe.pages.page_registry import all_pages
from tui_probe.pages.views import kind_of, names
from tui_probe.probekit.probe_results import choose_target
from tui_probe.trace.follow import open_trace
from tui_probe.trace.long_column import row_numbers
from tui_probe.trace.user_state import remember_opened
from tui_probe.ui.live.live_pages import KERNEL_TABS, RUN_TABS

DATA = Path(__file__).parents[1] / "data"
SECTORS = str(DATA / "h200" / "attention_sectors")
BLOCKS = str(DATA / "h200" / "demo")


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An older and a newer trace where traces are looked for; the newer one."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    arguments.user_settings.cache_clear()
    write_example(tmp_path / "trace" / "newest")
    return "trace/newest"


def told(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capfd.readouterr().out


def test_a_name_is_one_page_with_a_title_and_a_line_about_it() -> None:
    names = [page.name for page in all_pages()]
    assert len(names) == len(set(names))
    for page in all_pages():
        assert page.title
        assert page.about
        assert page.scope in ("trace", "kernel", "trace, kernel")
    assert {page.name for page in all_pages() if page.scope == "trace, kernel"} == {
        "summary", "launches", "results", "blocks", "lines", "stuck",
    }  # fmt: skip


def test_the_live_screen_has_the_names_and_titles_of_pages() -> None:
    titles = {page.name: page.title for page in all_pages()}
    tabs = {tab.id: tab.title for tab in (*KERNEL_TABS, *RUN_TABS)}
    shorts = {"process": tabs.pop("process")}
    assert {"ptx", "events", "results", "ranges"} <= tabs.keys() & titles.keys()
    assert all(titles[name] == title for name, title in tabs.items() if name in titles)
    assert shorts == {
        page.name: page.of_kernel.short_title for page in all_pages() if page.of_kernel and page.name in shorts
    }


@pytest.mark.parametrize("page", ["kernels", "summary", "launches", "results", "blocks", "ranges", "events"])
@pytest.mark.parametrize("form", ["json", "csv"])
def test_show_and_report_write_the_same_of_a_trace(
    trace: str, page: str, form: str, capfd: pytest.CaptureFixture[str]
) -> None:
    shown = told(capfd, "show", page, trace, "--format", form)
    assert shown == told(capfd, "report", trace, "--page", page, "--format", form)


@pytest.mark.parametrize("page", ["summary", "launches", "results", "blocks", "source", "process"])
@pytest.mark.parametrize("form", ["json", "csv"])
def test_show_and_report_write_the_same_of_a_kernel(page: str, form: str, capfd: pytest.CaptureFixture[str]) -> None:
    kernel = f"{BLOCKS}:zero"
    shown = told(capfd, "show", page, kernel, "--format", form)
    assert shown == told(capfd, "report", kernel, "--page", page, "--format", form)
    assert shown == told(capfd, "show", page, BLOCKS, "-k", "zero", "--format", form)


def test_text_of_a_kernel_in_a_report(capfd: pytest.CaptureFixture[str]) -> None:
    shown = told(capfd, "show", "summary", f"{BLOCKS}:0", "--width", "100")
    assert told(capfd, "report", f"{BLOCKS}:0", "--width", "100") == shown
    assert told(capfd, "report", f"{BLOCKS}:0", "--width", "100", "--format", "md") == f"```text\n{shown}```\n"


def test_without_a_trace_it_is_the_newest(trace: str, capfd: pytest.CaptureFixture[str]) -> None:
    of_it = told(capfd, "report", trace)
    assert told(capfd, "report") == told(capfd, "open", "--no-ui") == of_it
    kernels = told(capfd, "show", "kernels", "--format", "csv")
    assert told(capfd, "report", "--format", "csv") == kernels
    assert told(capfd, "show", "summary", ":2") == told(capfd, "show", "summary", f"{trace}:2")
    assert "summary" in told(capfd, "show", ":0")


def test_report_prints_what_run_printed_at_its_end(trace: str, capfd: pytest.CaptureFixture[str]) -> None:
    report_after_run(Outcome(traces=[Path(trace)]), ascii_only=False)
    of_run = capfd.readouterr().out
    assert f"\n{told(capfd, 'report', trace)}" == of_run
    sections = [of_run.index(title) for title in ("Where to look first", "status    launches", "Values of the probe")]
    assert sections == sorted(sections)


def test_missing_trace_error_names_searched_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    arguments.user_settings.cache_clear()
    for words in (["report"], ["show", "kernels"], ["open"], ["compare", ":0", ":1"], ["roofline"]):
        assert main(words) == 4
        assert f"no trace in {tmp_path}/trace" in capfd.readouterr().err
    write_example(tmp_path / "other place" / "one")
    remember_opened(tmp_path / "other place" / "one")
    assert main(["report"]) == 4
    assert f"e.g. '{tmp_path}/other place/one', the trace opened last" in capfd.readouterr().err


def test_a_trace_whose_path_has_colons(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_example(tmp_path / "at:12:30")
    assert len(json.loads(told(capfd, "report", f"{tmp_path}/at:12:30", "--format", "json"))["kernels"]) == 5
    document = json.loads(told(capfd, "show", "summary", f"{tmp_path}/at:12:30:2", "--format", "json"))
    assert document["kernel"]["index"] == 2


def test_commands_take_kernels_of_traces(trace: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert "copy_kernel" in told(capfd, "open", f"{trace}:copy", "--no-ui")
    assert main(["roofline", f"{trace}:nonsense"]) == 1
    assert "no kernel is named nonsense" in capfd.readouterr().err


def test_list_of_pages_refuses_unknown_kernel(capfd: pytest.CaptureFixture[str]) -> None:
    trace = str(Path(__file__).parent.parent / "data" / "h200" / "demo")
    assert main(["show", f"{trace}:nonsense"]) == 1
    assert "no kernel is named nonsense" in capfd.readouterr().err
    assert main(["show", f"{trace}:matmul"]) == 0
    assert "1 of 1 kernel" in capfd.readouterr().out
    assert main(["roofline", f"{trace}@1"]) == 2
    assert "omit @1" in capfd.readouterr().err


@pytest.mark.parametrize("name", names())
def test_every_view_explains_itself(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["show", name, "--explain", "--width", "80"]) == 0
    first, blank, *body = capfd.readouterr().out.splitlines()
    assert first.startswith(f"{kind_of(name).title}: ")
    assert blank == ""
    assert body
    assert all(len(line) <= 80 for line in body)


def test_show_names_the_default_kernel(trace: str, capfd: pytest.CaptureFixture[str]) -> None:
    del trace
    assert main(["show", "ptx", SECTORS]) == 0
    count = len(open_trace(Path(SECTORS)).kernels)
    shown = next(kernel.index for kernel in open_trace(Path(SECTORS)).kernels if kernel.result_rows)
    assert f"showing #{shown} of {count} kernels; select a kernel with TRACE:KERNEL" in capfd.readouterr().err
    assert main(["show", "ptx", f"{SECTORS}:{shown}"]) == 0
    assert "showing" not in capfd.readouterr().err


def test_kernels_with_results_come_first_where_none_is_named() -> None:
    trace = open_trace(Path(BLOCKS))
    results = {kernel.index: bool(kernel.result_rows) for kernel in trace.kernels}
    first = next(index for index, has in results.items() if has)
    trace.kernels[first].outcome.result_rows = row_numbers(trace.spill)
    other = next(index for index, has in results.items() if has and index != first)
    assert choose_target(trace, kind_of("summary")).source.kernel.index == other
    assert choose_target(trace, kind_of("summary"), str(first)).source.kernel.index == first


def test_a_file_of_another_profiler_is_no_trace(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my profile.csv"
    file.write_text("ID\n")
    assert main(["report", str(file)]) == 4
    assert f"for files of ncu or nsys: tui-probe open '{file}'" in capfd.readouterr().err
