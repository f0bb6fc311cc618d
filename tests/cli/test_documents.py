"""JSON of every command matches its published schema; --max-chars and --brief keep their limits."""

from __future__ import annotations

import json
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.bench.brief import bundled_traces
from tests.bench.long_trace import LongTrace
from tests.recorded import DATA, H200, SIMULATED
from tui_probe.cli.main import main
from tui_probe.pages.page_registry import page_names, report_document
from tui_probe.schemas import read_schema, schema_names
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.run_brief import MAX_CHARS, run_brief

jsonschema = pytest.importorskip("jsonschema", reason="a test dependency: pip install -e '.[dev]'")

DEMO, SECTORS = str(H200 / "demo"), str(SIMULATED / "gmem_sectors")
MANY = 10_000
COMMANDS = {
    "report": ("report", DEMO, "--format", "json"),
    "summary": ("report", SECTORS, "--page", "summary", "--format", "json"),
    "brief": ("report", "--brief", DEMO, "--format", "json"),
    "view": ("show", "summary", f"{DEMO}:4", "--format", "json"),
    "lines": ("show", "lines", str(H200 / "attention_sectors"), "--format", "json"),
    "compare": ("compare", DEMO, str(H200 / "dmat"), "--format", "json"),
    "list": ("list", str(H200), "--format", "json"),
    "check": ("check", "block_sched", str(DATA / "ptx" / "assembly.sm_80.ptx"), "--format", "json"),
    "check_waits": ("check", str(DATA / "ptx" / "attn_fwd.sm_90a.cubin"), "--waits", "--format", "json"),
    "doctor": ("doctor", "--format", "json"),
    "eval": ("eval", "scheduling", "--json"),
    "import": ("import", "ncu", str(DATA / "ncu" / "vec_metrics.csv"), "--format", "json"),
    "roofline": ("roofline", DEMO, "--format", "json"),
}
SCHEMAS = {"check_waits": "check", "summary": "report", "lines": "report", "roofline": "import"}
LIMITED = ("report", "summary", "brief", "view", "lines", "compare", "list")


def closed(schema: Any) -> Any:
    """Return a schema in which a field that it does not name is an error."""
    if isinstance(schema, list):
        return [closed(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    limit = {"additionalProperties": False} if schema.get("properties") and "page" not in schema["properties"] else {}
    return {**limit, **{key: closed(value) for key, value in schema.items()}}


@cache
def validator(name: str) -> Any:
    """A validator that allows no field beyond those of the schema."""
    return jsonschema.Draft202012Validator(closed(read_schema(name)))


def check(document: dict[str, Any], name: str) -> None:
    validator(name).validate(document)


@pytest.fixture
def written(capfd: pytest.CaptureFixture[str]) -> Any:
    def write(*arguments: str) -> str:
        capfd.readouterr()
        main([*arguments])
        return capfd.readouterr().out

    return write


@pytest.mark.parametrize("name", schema_names())
def test_schema_is_valid_and_complete_in_itself(name: str, written: Any) -> None:
    schema = json.loads(written("schema", name))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert "finding.json" not in json.dumps(schema)
    assert name in written("schema")


@pytest.mark.parametrize("name", COMMANDS)
def test_json_of_command_matches_its_schema(name: str, written: Any) -> None:
    check(json.loads(written(*COMMANDS[name])), SCHEMAS.get(name, name))


def test_documents_of_recorded_traces_match_the_schema() -> None:
    directories = sorted(log.parent for log in DATA.rglob("event.log"))
    assert len(directories) > 10
    for directory in directories:
        trace = open_trace(directory)
        for page in ("kernels", "summary"):
            document, beyond = report_document(trace, page, 1 << 30)
            assert beyond == 0
            check(json.loads(json.dumps(document)), "report")
        check(json.loads(json.dumps(run_brief(trace).record())), "brief")


def test_other_pages_are_named_by_the_document() -> None:
    trace = open_trace(Path(DEMO))
    of_report = jsonschema.Draft202012Validator(read_schema("report"))
    for page in page_names():
        document, _ = report_document(trace, page, 1 << 30)
        of_report.validate(json.loads(json.dumps(document)))
        assert page in document


@pytest.mark.parametrize("name", LIMITED)
@pytest.mark.parametrize("chars", [200, 1000, 4000])
def test_max_chars_keeps_json_valid_and_names_the_rest(name: str, chars: int, written: Any) -> None:
    arguments = COMMANDS[name]
    text, uncut = written(*arguments, "--max-chars", str(chars)), written(*arguments)
    assert len(text) <= chars
    document = json.loads(text)
    check(document, SCHEMAS.get(name, name))
    if len(uncut) > 2 * chars and chars > 200 and name != "brief":
        assert document["omitted"]["command"] == shlex.join(["tui-probe", *arguments])
        assert document["omitted"]["rows"]


def test_max_chars_keeps_findings_of_the_summary_before_open_questions(written: Any) -> None:
    complete = json.loads(written("show", "summary", DEMO, "--format", "json"))
    document = json.loads(written("show", "summary", DEMO, "--format", "json", "--max-chars", "3500"))
    assert complete["open_questions"]
    assert document["summary"] == complete["summary"][: len(document["summary"])] != []
    assert "open_questions" in document["omitted"]["rows"]


def test_max_chars_keeps_findings_before_kernels(written: Any) -> None:
    document = json.loads(written("report", DEMO, "--format", "json", "--max-chars", "4000"))
    assert document["findings"][0]["severity"] == "high"
    assert len(document["kernels"]) < len(document["findings"])


@pytest.mark.parametrize("arguments", [
    ("report", DEMO), ("report", DEMO, "--page", "kernels"), ("report", "--brief", DEMO),
    ("show", "summary", f"{DEMO}:4"), ("show", "timeline", f"{DEMO}:4"),
    ("compare", DEMO, str(H200 / "dmat")), ("list", str(H200)),
    ("report", DEMO, "--page", "kernels", "--format", "md"), ("report", DEMO, "--ascii"),
    ("show", "diff", f"{DEMO}:4"),
])  # fmt: skip
def test_max_chars_cuts_text_at_a_line(arguments: tuple[str, ...], written: Any) -> None:
    uncut, text = written(*arguments), written(*arguments, "--max-chars", "600")
    assert len(text) <= 600 < len(uncut)
    assert "omitted; to show all: tui-probe " in text.splitlines()[-1] or "--brief" in arguments
    assert text.splitlines()[0] == uncut.splitlines()[0]


def test_max_chars_of_csv_cuts_at_a_row(written: Any, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ("report", DEMO, "--page", "results", "--format", "csv")
    assert main([*arguments, "--max-chars=400"]) == 0
    text, note = capfd.readouterr()
    assert len(text) <= 400
    assert written(*arguments).startswith(text)
    assert f"rows omitted; to show all: {shlex.join(['tui-probe', *arguments])}" in note


def test_max_chars_below_the_smallest_document_is_a_usage_error(capfd: pytest.CaptureFixture[str]) -> None:
    for word in ("0", "199", "many"):
        with pytest.raises(SystemExit) as stopped:
            main(["report", DEMO, "--max-chars", word])
        assert stopped.value.code == 2
        assert "at least 200" in capfd.readouterr().err


def test_brief_of_every_bundled_trace_fits() -> None:
    for directory in bundled_traces():
        brief = run_brief(open_trace(directory))
        for ascii_only in (False, True):
            assert 0 < len(brief.text(ascii_only=ascii_only)) <= MAX_CHARS, directory
        assert len(brief.document()) <= MAX_CHARS


def test_brief_of_ten_thousand_kernels_fits(tmp_path: Path) -> None:
    long = LongTrace(tmp_path / "trace", 130_000, MANY, 4_000_000, f"./long {'x' * 5000}")
    long.write_log()
    brief = run_brief(open_trace(long.directory))
    text = brief.text()
    assert len(text) <= MAX_CHARS
    assert "8 kernels of " in text
    assert "tui-probe report" in text
    document = brief.document()
    assert len(document) <= MAX_CHARS
    check(json.loads(document), "brief")


def test_brief_names_lines_fixes_and_the_next_command(written: Any) -> None:
    text = written("report", "--brief", str(H200 / "dmat"))
    assert "next:" in text
    assert "fix: launch more blocks" in text
    assert text.count("fix: launch more blocks") == 1, "advice is given once"
    assert "    tui-probe run -p what_limits" in text


def test_brief_of_a_width_breaks_lines_at_words_and_keeps_commands_whole(written: Any) -> None:
    text, unwrapped = (written("report", "--brief", str(H200 / "dmat"), *width) for width in (("--width", "60"), ()))
    assert [line for line in text.splitlines() if len(line) > 60 and "    tui-probe " not in line] == []
    assert text.split() == unwrapped.split()
    assert max(map(len, unwrapped.splitlines())) > 60


def test_brief_of_a_kernel_or_page_is_a_usage_error(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in ((f"{DEMO}:4",), (DEMO, "--page", "kernels"), (DEMO, "--format", "csv")):
        assert main(["report", "--brief", *arguments]) == 2
        assert "whole run" in capfd.readouterr().err
