"""Findings in the summary, of every built-in probe, run on the simulated GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.probes.specimens import add_specimen, ptx_probes
from tests.sizes import golden_widths
from tests.trace.make import TraceWriter
from tui_probe.draw.spans import plain, to_ascii, width
from tui_probe.nsight.pages.explanations import EXPLANATIONS
from tui_probe.pages.findings_page import LABEL_WIDTH, QUESTION_WIDTH, all_questions, findings_lines, open_questions
from tui_probe.pages.views import kind_of, kinds, names
from tui_probe.probekit.page_kinds import DIGIT_PAGES, PAGES, ViewSource
from tui_probe.probekit.registry import all_probes
from tui_probe.schemas import read_schema
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.findings import ResultFindings, findings_by_probe, launch_findings
from tui_probe.verdicts.kernel_findings import kernel_findings

PROBES = tuple(ptx_probes())

if TYPE_CHECKING:
    from tui_probe.trace.model import Trace


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    """A trace for each built-in probe, of one kernel."""
    return {probe: trace_of(probe, tmp_path_factory.mktemp(probe)) for probe in PROBES}


def trace_of(probe: str, root: Path) -> Trace:
    writer = TraceWriter(root / "trace")
    writer.start(device="Simulated GPU", sms=8)
    add_specimen(writer, 0, probe, root)
    writer.exit()
    writer.run_json(driver={"path": "/sim/libcuda.so.1", "simulated": True})
    return open_trace(writer.directory)


def source_of(traces: dict[str, Trace], probe: str) -> ViewSource:
    return ViewSource(traces[probe], traces[probe].kernels[0])


def found_of(traces: dict[str, Trace], probe: str) -> ResultFindings:
    findings = launch_findings(source_of(traces, probe))
    assert findings is not None
    assert findings.problem is None
    return findings


def test_every_built_in_probe_has_findings(traces: dict[str, Trace]) -> None:
    assert all(probe.findings for probe in all_probes())
    assert all(found_of(traces, probe).findings for probe in PROBES)


def test_labels_of_findings_fit_their_column(traces: dict[str, Trace]) -> None:
    labels = [finding.label for probe in PROBES for finding in found_of(traces, probe).findings]
    assert [label for label in labels if width(label) >= LABEL_WIDTH] == []


def test_questions_and_pages_fit_the_lists_of_a_narrow_terminal() -> None:
    assert [question.text for question in all_questions() if width(question.text) > QUESTION_WIDTH] == []
    assert [kind.description for kind in kinds() if kind.name not in DIGIT_PAGES and width(kind.description) > 56] == []
    assert [page.description for page in PAGES if page.key.isalpha() and width(page.description) > 56] == []
    assert [texts[0] for texts in EXPLANATIONS.values() if width(texts[0].partition(". ")[0]) > 62] == []


@pytest.mark.parametrize("probe", PROBES)
def test_all_findings_as_text(traces: dict[str, Trace], probe: str) -> None:
    def shown(width: int, ascii_only: bool) -> str:
        text = "".join(f"{plain(line).rstrip()}\n" for line in findings_lines(found_of(traces, probe), width))
        return to_ascii(text) if ascii_only else text

    golden_widths(f"findings/{probe}.txt", shown)


def test_each_finding_is_data(traces: dict[str, Trace]) -> None:
    for probe in PROBES:
        record = json.loads(json.dumps(found_of(traces, probe).record(), allow_nan=False))
        assert record["probe"] == probe
        assert all(finding["key"] and finding["words"] for finding in record["findings"])


def test_every_finding_is_an_object_of_the_schema(traces: dict[str, Trace]) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="a test dependency: pip install -e '.[dev]'")
    validator = jsonschema.Draft202012Validator(read_schema("finding"))
    for probe in PROBES:
        findings = kernel_findings(traces[probe], traces[probe].kernels[0])
        records = [json.loads(json.dumps(finding.record(), allow_nan=False)) for finding in findings]
        for record in records:
            validator.validate(record)
        assert len({record["id"] for record in records}) == len(records), probe
        assert findings == sorted(findings, key=lambda finding: finding.order)
        origins = {value["provenance"] for record in records for value in record["evidence"]}
        assert "timed" not in origins, "the clock of the simulated GPU is not time"


def test_finding_has_location_gain_and_next_command(traces: dict[str, Trace]) -> None:
    trace = traces["gmem_sectors_by_line"]
    record = next(
        found.record() for found in kernel_findings(trace, trace.kernels[0]) if found.finding.line is not None
    )
    assert record["id"] == "0.gmem_sectors_by_line.worst_access.strided_store.cu:4"
    assert (record["location"]["file"].rpartition("/")[2], record["location"]["line"]) == ("strided_store.cu", 4)
    assert (record["location"]["ptx"], record["location"]["sass"]) == (32, None)
    assert record["severity"] == "high"
    assert record["confidence"] == "high", "sectors are counted"
    value = record["evidence"][0]
    assert (value["metric"], value["value"], value["ideal"]) == ("sectors_per_request", 8, 4)
    assert record["gain_at_most"]["value"] / record["gain_at_most"]["of"] == 0.5
    assert record["next"] == [f"tui-probe show lines {trace.directory}:0@0"]
    summed = traces["gmem_sectors"]
    stores = next(found for found in kernel_findings(summed, summed.kernels[0]) if found.finding.key == "stores")
    assert stores.next[-1].startswith("tui-probe run --sim -p gmem_sectors_by_line -- ")


def test_the_pages_that_findings_name_show_them(traces: dict[str, Trace]) -> None:
    for probe in PROBES:
        source = source_of(traces, probe)
        for finding in found_of(traces, probe).findings:
            assert not finding.page or kind_of(finding.page).missing_reason(source) is None, (probe, finding)


@pytest.mark.parametrize("probe", ["dmat", "gmem_sectors_by_line"])
def test_the_strided_store_is_the_worst_access(traces: dict[str, Trace], probe: str) -> None:
    worst = found_of(traces, probe).worst
    assert worst is not None
    assert (worst.key, worst.line, worst.stands_out) == ("worst_access", 32, True)
    assert worst.numbers["sectors_per_request"] == 8
    assert "strided_store.cu:4" in worst.words


def test_the_first_nan_has_a_place(traces: dict[str, Trace]) -> None:
    worst = found_of(traces, "nan_check").worst
    assert worst is not None
    assert "block (2,0,0) thread (11,0,0)" in worst.words


def test_views_know_the_probes_that_open_them(traces: dict[str, Trace]) -> None:
    measured = {probe for probe in PROBES if any(kernel.results for kernel in traces[probe].kernels)}
    kinds = [kind for kind in map(kind_of, names()) if measured & set(kind.probes)]
    assert kinds
    for kind in kinds:
        opened = {probe for probe in PROBES if kind.missing_reason(source_of(traces, probe)) is None}
        assert opened == measured & set(kind.probes), kind.name


def test_a_probe_does_not_ask_what_it_answers(traces: dict[str, Trace]) -> None:
    for probe in PROBES:
        source = source_of(traces, probe)
        options = [question.option for question in open_questions(source.kernel, findings_by_probe(source))]
        assert f"-p {probe}" not in options
        assert "--benchmark" not in options  # no times on a simulated GPU
        assert len(options) == len(set(options))


def test_questions_are_only_those_that_the_kernel_has(traces: dict[str, Trace]) -> None:
    def options(probe: str) -> set[str]:
        return {question.option for question in open_questions(source_of(traces, probe).kernel, [])}

    assert "-p smem_conflicts_by_line" in options("block_sched")  # matmul
    assert "-p smem_conflicts_by_line" not in options("dmat")  # strided_store
    assert "-p barrier_wait_by_line" in options("block_sched")
    assert "-p tensorop_count_by_line" not in options("block_sched")
    assert "-p dmat" in options("tensorop_count")


def test_a_finding_asks_for_what_explains_it(traces: dict[str, Trace]) -> None:
    source = source_of(traces, "gmem_sectors")
    assert open_questions(source.kernel, findings_by_probe(source))[0].option == "-p gmem_sectors_by_line"
    assert open_questions(source.kernel, [])[0].option == "-p block_sched"


def test_every_question_is_of_one_probe_and_every_answer_of_a_question() -> None:
    asked = [probe.question.key for probe in all_probes() if probe.question]
    assert len(asked) == len(set(asked))
    assert {key for probe in all_probes() for key in probe.answers} <= set(asked)
    assert [question.option for question in all_questions()][-1] == "--benchmark"


def test_question_names_the_set_that_its_pages_name() -> None:
    """The waits of a kernel are measured by four probes in turn: the first alone would measure some of them."""
    (waits,) = [question for question in all_questions() if question.key == "stalls"]
    assert waits.option == "-p stalls"
    assert waits.probes[0] == "stall_sites"
    assert "Stalls" in waits.pages


def test_follow_up_of_a_finding_is_a_question(traces: dict[str, Trace]) -> None:
    asked = {finding.next_question for probe in PROBES for finding in found_of(traces, probe).findings}
    assert asked - {""} <= {question.key for question in all_questions()}


def test_damaged_result_is_reported(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.kernel(0, "k")
    writer.save(0, writer.launch(0), b"not a result")
    writer.kernel(1, "l", "skipped", reason="no PTX in image")
    trace = open_trace(writer.directory)
    findings = launch_findings(ViewSource(trace, trace.kernels[0]))
    assert findings is not None
    assert findings.problem is not None
    assert "result/" in findings.problem
    assert launch_findings(ViewSource(trace, trace.kernels[1])) is None
    assert open_questions(trace.kernels[1], []) == []
