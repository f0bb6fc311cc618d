"""A probe of someone else's: a folder like the built-in ones, named by path or installed by a package."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.help.pages import blocks

from .conftest import EXAMPLE, Tool

FOLDER = Path(__file__).parent / "probes" / "store_count"
SAXPY = [*EXAMPLE, "--kernel", "saxpy"]
STORES = 4096 * 4
"""One store for each element of the example."""
SAID = "16 384"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory, natives: Path) -> Path:
    return recorded(Tool(tmp_path_factory.mktemp("recording"), natives))


@pytest.fixture
def trace(recording: Path, tool: Tool) -> Path:
    """One with the probe of the folder, for a test only."""
    return Path(shutil.copytree(recording, tool.folder / recording.name))


def recorded(tool: Tool, probe: str = str(FOLDER)) -> Path:
    result, trace = tool.run(SAXPY, "-p", probe)
    assert (result.returncode, result.stdout) == (0, "saxpy ok\n"), result.stderr
    return trace


def test_probe_folder_adds_columns_pages_findings_and_comparison(tool: Tool, trace: Path) -> None:
    known = ("--probe", str(FOLDER))
    assert f"launch 0: stores {SAID}" in tool("report", str(trace), "--page", "results", *known).stdout
    table = tool("show", "stores", str(trace), *known)
    assert table.returncode == 0, table.stderr
    assert f"{STORES} stores in all" in table.stdout
    summary = tool("show", "summary", f"{trace}:0", *known).stdout
    assert "found in launch 0 by -p store_count" in summary
    assert "→ Stores" in summary
    compared = json.loads(tool("compare", str(trace), str(trace), "--format", "json", *known).stdout)
    assert [(row["before"], row["verdict"]) for row in compared["figures"] if row["figure"] == "stored"] == [
        (STORES, None)
    ]


def test_a_report_after_the_run_knows_it(tool: Tool) -> None:
    result = tool("run", "--sim", "-p", str(FOLDER), "--", *SAXPY)
    assert result.returncode == 0
    assert f"stores {SAID}" in result.stdout


def test_without_it_the_records_are_shown_and_what_to_do(tool: Tool, trace: Path) -> None:
    todo = f"the probe store_count is not installed; .*--probe {FOLDER}"
    for page in ("results", "summary"):
        shown = tool("show", page, f"{trace}:0")
        assert shown.returncode == 0, shown.stderr
        assert re.search(todo, " ".join(shown.stdout.replace(",", " ").split())), shown.stdout
    assert "stores stored" in tool("show", "results", f"{trace}:0").stdout
    for page in ("lines", "stores"):
        shown = tool("show", page, f"{trace}:0")
        assert shown.returncode != 0
        assert re.search(todo, shown.stderr.replace(",", " ")), shown.stderr


def test_no_code_of_a_trace_is_run(tool: Tool, trace: Path) -> None:
    """A trace that holds a probe's folder stays data."""
    (trace / "__init__.py").write_text("raise SystemExit('code of a trace was run')\n")
    for words in (["report", str(trace)], ["show", "results", str(trace)], ["show", "summary", str(trace)]):
        assert tool(*words).returncode == 0


@pytest.fixture
def installed(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that brings the probe, as pip would lay it out."""
    site = tool.folder / "site"
    shutil.copytree(FOLDER, site / "store_probes" / "store_count")
    (site / "store_probes" / "__init__.py").write_text("")
    about = site / "store_probes-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: store-probes\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[tui_probe.probes]\nstore_count = store_probes.store_count\n")
    monkeypatch.setenv("PYTHONPATH", str(site))
    return site


def test_an_installed_one_needs_no_path(tool: Tool, installed: Path) -> None:
    del installed
    trace = recorded(tool, "store_count")
    assert f"{STORES} stores in all" in tool("show", "stores", str(trace)).stdout
    assert "store_count: stores" in tool("probes").stdout


def test_a_broken_one_is_reported_and_stops_nothing(tool: Tool, installed: Path) -> None:
    (installed / "store_probes" / "store_count" / "__init__.py").write_text("1 / 0\n")
    trace = recorded(tool, "block_sched")
    assert " blocks, cycles per slot: " in tool("report", str(trace), "--page", "results").stdout
    listed = tool("probes")
    assert listed.returncode == 0
    assert "store_probes.store_count: ZeroDivisionError: division by zero" in listed.stderr


def test_an_installed_one_that_is_called_as_a_built_in_one_is_left_out(tool: Tool, installed: Path) -> None:
    code = installed / "store_probes" / "store_count" / "__init__.py"
    code.write_text(code.read_text().replace('count_kind("stores"', 'count_kind("summary"'))
    listed = tool("probes")
    assert listed.returncode == 0
    assert "store_probes.store_count: page summary exists; choose another name" in listed.stderr


def broken(tool: Tool, before: str, after: str) -> Path:
    """The probe with a bug in its code."""
    folder = tool.folder / "broken" / "store_count"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(FOLDER, folder)
    code = (folder / "__init__.py").read_text()
    assert before in code
    (folder / "__init__.py").write_text(code.replace(before, after))
    return folder


def test_a_bug_in_its_analysis_changes_nothing_of_the_program(tool: Tool) -> None:
    folder = broken(tool, 'sum_records(probe_result.result, RECORD, "store_count")', "1 // 0")
    command = ["sh", "-c", f"{' '.join(SAXPY)}; exit 7"]
    result = tool("run", "--sim", "--no-ui", "-p", str(folder), "--", *command)
    assert result.returncode == 7
    assert "Traceback" not in result.stderr
    problem = f"probe store_count: ZeroDivisionError: integer division or modulo by zero, {folder}/__init__.py:"
    assert problem in " ".join(result.stdout.split())
    (trace,) = map(str, (tool.folder / "trace").iterdir())
    known = ("--probe", str(folder), "--width", "400")
    for words in (["show", "results", f"{trace}:0"], ["show", "summary", trace], ["show", "stores", trace]):
        shown = tool(*words, *known)
        assert (shown.returncode, problem in shown.stdout) == (0, True), shown.stderr
    assert problem in tool("compare", trace, trace, *known).stdout


def test_other_bugs_are_reported_in_place_of_values(tool: Tool, trace: Path) -> None:
    bugs = (
        (
            "stores",
            ', read=lambda analysis: analysis.totals["stored"]',
            "",
            "metric stored: 'CounterSums' object has no attribute",
        ),
        (
            "summary",
            """f"{stored} by {probe_result.result.threads} threads\"""",
            "probe_result.no_such",
            "no attribute 'no_such'",
        ),
        (
            "summary",
            'summary, "stores"',
            'summary, "storage"',
            "finding 'stores' is on page 'storage', which does not exist",
        ),
        ("stores", "[f\"{analysis.totals['stored']} stores in all\"]", "[][0]", "IndexError: list index out of range"),
    )
    for page, before, after, said in bugs:
        shown = tool("show", page, f"{trace}:0", "--probe", str(broken(tool, before, after)))
        assert shown.returncode == 0, shown.stderr
        assert said in " ".join(shown.stdout.split())


def test_a_broken_folder_that_is_named_is_an_error(tool: Tool) -> None:
    folder = tool.folder / "broken"
    shutil.copytree(FOLDER, folder)
    (folder / "__init__.py").write_text("PROBES = (3,)\n")
    result = tool("run", "--sim", "-p", "broken", "--", *SAXPY)
    assert result.returncode == 2
    assert "PROBES holds 3" in result.stderr


def test_the_example_of_the_help_does_what_it_says(tool: Tool) -> None:
    folder = tool.folder / "store_lines"
    folder.mkdir()
    (folder / "probe.toml").write_text(blocks("probe-folders", "toml")[0])
    (folder / "__init__.py").write_text(blocks("probe-folders", "python")[0])
    result = tool("run", "--sim", "-p", "./store_lines", "--", *SAXPY)
    assert result.returncode == 0, result.stderr
    (trace,) = map(str, (tool.folder / "trace").iterdir())
    assert f"stores {SAID}" in result.stdout
    known = ("--probe", "store_lines")
    summary = tool("show", "summary", f"{trace}:0", *known).stdout
    assert re.search(rf"most stores +{STORES} by st.global.*→ Lines", summary), summary
    lines = json.loads(tool("show", "lines", trace, "-k", "0", "--format", "json", *known).stdout)["data"]["lines"]
    assert [line["stores"] for line in lines] == [STORES]
    assert SAID in tool("show", "store_table", trace, *known).stdout
