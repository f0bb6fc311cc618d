"""What the summary says first: the findings of every built-in probe, run on the simulated GPU."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.engine.kernels import DATA
from tests.golden import golden
from tests.probes.running import example, result_of, simulated
from tests.probes.test_smem_conflicts import access
from tests.trace.make import TraceWriter
from tui_probe.draw.spans import plain, to_ascii
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.prepare import probed_kernel
from tui_probe.pages.findings.found import Found, find
from tui_probe.pages.findings.lines import found_lines
from tui_probe.pages.findings.questions import open_questions, questions
from tui_probe.pages.views import kind_of, names
from tui_probe.probe_files.loading import built_in_names, load_probe
from tui_probe.probekit.kind import Source
from tui_probe.probekit.registry import all_probes
from tui_probe.ptx.parser import parse
from tui_probe.trace.follow import open_trace

PROBES = tuple(built_in_names())

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.trace.event_types import Dim3
    from tui_probe.trace.model import Trace

X = np.arange(300, dtype=np.float32)
X[203] = math.nan
ROUNDS = np.ones((64, 64), np.float32)
TILES = np.ones((3, 16, 8), np.float32)
HALVES = np.ones((3, 16, 16), np.float16)
Run = tuple[str, "Sequence[Any]", "Dim3", "Dim3"]
STRIDED: Run = ("strided_store", (np.zeros(16384, np.uint32), np.uint32(8192)), (32, 1, 1), (256, 1, 1))
PART: Run = ("strided_store", (np.zeros(16384, np.uint32), np.uint32(5000)), (32, 1, 1), (256, 1, 1))
MATMUL: Run = ("matmul", (ROUNDS * 0, ROUNDS, ROUNDS, np.int32(64)), (4, 4, 1), (16, 16, 1))
COLUMNS: Run = ("columns", (np.arange(32, dtype=np.uint32) * 32,), (1, 1, 1), (32, 1, 1))
MATRICES: Run = ("matrices", (TILES * 0, HALVES, HALVES[:, :, :8].copy(), TILES), (1, 1, 1), (96, 1, 1))
SAXPY: Run = ("saxpy", (np.ones(300, np.float32), X, np.float32(2), np.int32(300)), (4, 1, 1), (96, 1, 1))
AWAITED: Run = ("awaited", (np.zeros(256, np.float32), np.arange(256, dtype=np.float32)), (1, 1, 1), (256, 1, 1))
BY_PROBE: dict[str, Run] = {
    "async_wait": AWAITED,
    **dict.fromkeys(("dmat", "dmat_compact", "gmem_sectors", "gmem_sectors_by_line"), STRIDED),
    **dict.fromkeys(("divergence", "divergence_by_line"), PART),
    **dict.fromkeys(("smem_conflicts", "smem_conflicts_by_line"), COLUMNS),
    **dict.fromkeys(("tensorop_count", "tensorop_count_by_line"), MATRICES),
    "nan_check": SAXPY,
}
OWN = {
    "awaited": (DATA / "waits.sm_90a.ptx").read_text(),
    "columns": access("b32", 4),
    "matrices": simulated("matrices"),
}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """A kernel for each built-in probe."""
    root = tmp_path_factory.mktemp("findings")
    writer = TraceWriter(root / "trace")
    writer.start(device="Simulated GPU", sms=8)
    for index, probe in enumerate(built_in_names()):
        name, arguments, grid, block = BY_PROBE.get(probe, MATMUL)
        text = OWN.get(name) or example(name)
        kernel = Kernel.of(parse(text), parse(text).entries()[0].name)
        folder = writer.kernel(index, f"{probe}_of_{kernel.entry.name}")
        (folder / "pruned.ptx").write_text(kernel.pruned)
        (folder / "kernel.info").write_text(probed_kernel(kernel, load_probe(probe))[1])
        result = result_of(root, probe, text, *arguments, grid=grid, block=block)
        writer.save(index, writer.launch(index, grid, block), result.path.read_bytes())
    writer.exit()
    writer.run_json(driver={"path": "/sim/libcuda.so.1", "simulated": True})
    return open_trace(writer.directory)


def source_of(trace: Trace, probe: str) -> Source:
    return Source(trace, trace.kernels[built_in_names().index(probe)])


def found_of(trace: Trace, probe: str) -> Found:
    found = find(source_of(trace, probe))
    assert found is not None
    assert found.problem is None
    return found


def test_every_built_in_probe_has_findings(trace: Trace) -> None:
    assert set(PROBES) == set(built_in_names())
    assert all(probe.findings for probe in all_probes())
    assert all(found_of(trace, probe).findings for probe in PROBES)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_all_findings_as_text(trace: Trace, width: int) -> None:
    lines = [plain(line).rstrip() for probe in PROBES for line in (*found_lines(found_of(trace, probe), width), ())]
    assert max(map(len, map(to_ascii, lines))) <= width
    golden("findings.txt", "".join(f"{line}\n" for line in lines), f"{width}", width=width)


def test_each_finding_is_data(trace: Trace) -> None:
    for probe in PROBES:
        record = json.loads(json.dumps(found_of(trace, probe).record(), allow_nan=False))
        assert record["probe"] == probe
        assert all(each["key"] and each["words"] for each in record["findings"])


def test_the_pages_that_findings_name_show_them(trace: Trace) -> None:
    for probe in PROBES:
        source = source_of(trace, probe)
        for finding in found_of(trace, probe).findings:
            assert not finding.page or kind_of(finding.page).missing(source) is None, (probe, finding)


@pytest.mark.parametrize("probe", ["dmat", "gmem_sectors_by_line"])
def test_the_strided_store_is_the_worst_access(trace: Trace, probe: str) -> None:
    worst = found_of(trace, probe).worst
    assert worst is not None
    assert (worst.key, worst.line, worst.stands_out) == ("worst_access", 32, True)
    assert worst.values["sectors_per_request"] == 8
    assert "strided_store.cu:4" in worst.words


def test_the_first_nan_has_a_place(trace: Trace) -> None:
    worst = found_of(trace, "nan_check").worst
    assert worst is not None
    assert "block (2,0,0) thread (11,0,0)" in worst.words


def test_views_know_the_probes_that_open_them(trace: Trace) -> None:
    for name in names():
        kind = kind_of(name)
        if kind.probes:
            opened = {probe for probe in PROBES if kind.missing(source_of(trace, probe)) is None}
            assert opened == set(kind.probes), name


def test_a_probe_does_not_ask_what_it_answers(trace: Trace) -> None:
    for probe in PROBES:
        source = source_of(trace, probe)
        options = [question.option for question in open_questions(source.kernel, find(source))]
        assert f"-p {probe}" not in options
        assert "--benchmark" not in options  # a simulated GPU has no time
        assert len(options) == len(set(options))


def test_questions_are_only_those_that_the_kernel_has(trace: Trace) -> None:
    def options(probe: str) -> set[str]:
        return {question.option for question in open_questions(source_of(trace, probe).kernel, None)}

    assert "-p smem_conflicts_by_line" in options("block_sched")  # matmul
    assert "-p smem_conflicts_by_line" not in options("dmat")  # strided_store
    assert "-p barrier_wait_by_line" in options("block_sched")
    assert "-p tensorop_count_by_line" not in options("block_sched")
    assert "-p dmat" in options("tensorop_count")


def test_a_finding_asks_for_what_explains_it(trace: Trace) -> None:
    source = source_of(trace, "gmem_sectors")
    assert open_questions(source.kernel, find(source))[0].option == "-p gmem_sectors_by_line"
    assert open_questions(source.kernel, None)[0].option == "-p block_sched"


def test_every_question_is_of_one_probe_and_every_answer_of_a_question() -> None:
    asked = [probe.question.key for probe in all_probes() if probe.question]
    assert len(asked) == len(set(asked))
    assert {key for probe in all_probes() for key in probe.answers} <= set(asked)
    assert [question.option for question in questions()][-1] == "--benchmark"


def test_what_findings_ask_is_a_question(trace: Trace) -> None:
    asked = {finding.asks for probe in PROBES for finding in found_of(trace, probe).findings}
    assert asked - {""} <= {question.key for question in questions()}


def test_a_damaged_result_is_told(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.kernel(0, "k")
    writer.save(0, writer.launch(0), b"not a result")
    writer.kernel(1, "l", "skipped", reason="no PTX in image")
    trace = open_trace(writer.directory)
    found = find(Source(trace, trace.kernels[0]))
    assert found is not None
    assert found.problem is not None
    assert "result/" in found.problem
    assert find(Source(trace, trace.kernels[1])) is None
    assert open_questions(trace.kernels[1], None) == []
