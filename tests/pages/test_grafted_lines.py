"""Counts of single instructions of SASS: pages name them by offset, and never a line of PTX."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.pages.test_without_ptx import CUBINS, told_machine_code
from tests.trace.make import TraceWriter, result_bytes
from tui_probe.binaries.cubin import Cubin
from tui_probe.draw.table import as_record
from tui_probe.draw.view import Document, no_progress
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.grafting.grafts import Grafter
from tui_probe.engine.source_copies import SourceCopies
from tui_probe.pages.run_report import first_look, kernel_table
from tui_probe.pages.view_output import text_lines, view_lines
from tui_probe.pages.views import kind_of
from tui_probe.probe_files.loading import load_probe
from tui_probe.probekit.measured import analyse_results
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probes.gmem_sectors.analysis import SITE
from tui_probe.trace.follow import open_trace
from tui_probe.trace.source_lines import SourceLines, files_of
from tui_probe.verdicts.finding_summary import summarize_findings
from tui_probe.verdicts.findings import launch_findings
from tui_probe.verdicts.kernel_columns import KERNEL_COLUMNS, limiter_of, worst_line_of
from tui_probe.verdicts.kernel_snapshot import kernel_snapshot
from tui_probe.verdicts.run_findings import kernel_bounds

if TYPE_CHECKING:
    from tui_probe.trace.model import Trace

PROBE = "gmem_sectors_by_line"
NAME = "calls_plain"
LOAD, STORE = 80, 128


@pytest.fixture(scope="module")
def folder_files() -> dict[str, bytes]:
    if not Assembler().tools():
        pytest.skip("no ptxas on this machine: install nvidia-cuda-nvcc")
    made = Grafter(load_probe(PROBE), Assembler(), samples_blocks=False).graft(Cubin.read(CUBINS["pruned"]), NAME)
    texts = {"kernel.info": made.info.encode(), "sites.json": made.sites.encode()}
    return {**texts, "pruned.bin": made.pruned_image, "probed.bin": made.probed_image}


@pytest.fixture
def trace(tmp_path: Path, folder_files: dict[str, bytes]) -> Trace:
    """A launch whose loads touch 4 sectors per request, and whose stores touch 32."""
    writer = TraceWriter(tmp_path / "trace")
    writer.start()
    folder = writer.kernel(0, NAME, ptxas=False, way="graft")
    for name, content in folder_files.items():
        (folder / name).write_bytes(content)
    records = np.zeros(2, SITE)
    records["load_requests"], records["load_sectors"] = (10, 0), (40, 0)
    records["store_requests"], records["store_sectors"] = (0, 10), (0, 320)
    records["excess"] = (0, 280)
    none = np.zeros((8, 4, 0), np.uint8)
    content = result_bytes((8, 1, 1), (128, 1, 1), [(32, none)], about=[(4, SITE.itemsize, records.tobytes())])
    writer.save(0, writer.launch(0), content)
    writer.exit()
    return open_trace(writer.directory)


def opened(trace: Trace, page: str) -> Document:
    source = ViewSource(trace, trace.kernels[0])
    assert kind_of(page).missing_reason(source) is None
    view = kind_of(page).open(source, no_progress)
    assert isinstance(view, Document)
    return view


def text_of(view: Document) -> str:
    return "\n".join(text_lines(view_lines(view, 120, None)))


def test_lines_are_offsets(trace: Trace) -> None:
    view = opened(trace, "lines")
    first, second, *_ = text_of(view).splitlines()[3:]
    assert first.split()[0] == f"{STORE:#06x}"
    assert first.split()[-2:] == ["calls.cu:23", "STG"]
    assert second.split()[0] == f"{LOAD:#06x}"
    assert "PTX" not in text_of(view)
    assert view.target_view() == "sass"
    row = view.record()["lines"][0]
    assert (row["offset"], row["opcode"], row["sectors_per_request"]) == (STORE, "STG", 32)


def test_the_source_has_the_sums_of_its_instructions(trace: Trace) -> None:
    view = opened(trace, "source")
    assert "PTX" not in text_of(view)
    (file,) = view.record()["files"]
    assert file["file"] == "calls.cu"
    (line,) = (line for line in file["lines"] if line["requests"] is not None)
    assert (line["line"], line["requests"], line["sectors"]) == (23, 20, 360)
    assert {LOAD, STORE} <= set(line["offsets"])
    place = view.place_of(STORE, 120)
    assert place is not None
    assert "instructions, starting at offset" in " ".join(view.line_facts(place, 120))
    assert view.ptx_line(place, 120) == STORE
    assert view.target_view() == "sass"
    folder = trace.kernels[0].folder
    assert folder is not None
    assert files_of(folder) == ["calls.cu"]
    assert SourceLines.from_folder(folder).ptx_line(STORE) == ("calls.cu", 23)
    SourceCopies().add(folder)  # of files that are not there nothing is said


def test_machine_code_has_them_at_its_instructions(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    probed = (trace.kernels[0].file("probed.bin") or Path()).read_bytes()
    monkeypatch.setitem(CUBINS, "probed", probed)
    told_machine_code(monkeypatch)
    view = opened(trace, "sass")
    rows = {(row["side"], row["address"]): row for row in view.record()["lines"]}
    assert rows["pruned", f"{STORE:#06x}"]["sectors_per_request"] == 32
    place = view.place_of(STORE, 120)
    assert place is not None
    assert view.line_facts(place, 120)[-1] == f"offset {STORE:#06x}"
    assert view.ptx_line(place, 120) == STORE


def test_findings_and_figures_name_offsets(trace: Trace) -> None:
    (result,) = analyse_results(trace, trace.kernels[0])
    assert f"at offset {STORE:#06x}" in result.words
    assert "PTX" not in result.words
    findings = launch_findings(ViewSource(trace, trace.kernels[0]))
    assert findings is not None
    (finding,) = (line_finding for line_finding in findings.findings if line_finding.line)
    assert finding.words.startswith(f"STG {STORE:#06x} calls.cu:23, 32.0 sectors per request, ideal 4")
    record = json.loads(json.dumps(finding.record()))
    assert (record["ptx_line"], record["offset"]) == (None, STORE)
    text = summarize_findings(trace, trace.kernels[0]).words + "\n".join(
        first_look(trace, kernel_bounds(trace).kernels, 100)
    )
    assert f"{STORE:#06x}" in text
    assert "PTX" not in text


def test_kernel_columns_name_worst_line(trace: Trace) -> None:
    kernel = trace.kernels[0]
    record = as_record(KERNEL_COLUMNS, kernel)
    assert (record["limiter"], record["worst_line"]) == ("too small", "calls.cu:23 STG 32 sectors, ideal 4")
    assert record["worst_line"] == summarize_findings(trace, kernel).worst_line
    assert "calls.cu:23 STG 32 sectors, ideal 4" in "\n".join(kernel_table(trace, 100))
    snapshot = replace(kernel_snapshot(kernel, None), worst_line="a.cu:1 ld", limiter="latency")
    assert (limiter_of(snapshot), worst_line_of(snapshot)) == ("latency", "a.cu:1 ld")


def test_damaged_line_table_loses_only_its_lines() -> None:
    cubin = lzma.decompress(lzma.compress(CUBINS["pruned"])).replace(b"calls.cu\0", b"calls.cu\xff")
    if not Assembler().tools():
        pytest.skip("no ptxas on this machine: install nvidia-cuda-nvcc")
    made = Grafter(load_probe(PROBE), Assembler(), samples_blocks=False).graft(Cubin.read(cubin), NAME)
    assert "source" not in made.sites or "\\ufffd" in made.sites
    assert made.sites.count('"offset"') == 2
