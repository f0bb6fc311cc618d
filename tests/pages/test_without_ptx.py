"""Pages of kernels that have machine code and no PTX: grafted ones, and those that were not probed."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from tests.pages.timelines.drawing import golden_view
from tests.trace.make import TraceWriter
from tui_probe.binaries.cubin import Cubin
from tui_probe.cli.main import main
from tui_probe.draw.view import Document, Spot, no_progress
from tui_probe.engine.image_kernels import find_cubin
from tui_probe.errors import ImageError, TraceError
from tui_probe.pages.code.kernel_sass import read_code
from tui_probe.pages.code.line_measures import LineMeasures
from tui_probe.pages.code.measure_column import MeasureColumn
from tui_probe.pages.code.sass_text import SassCode, count_classes
from tui_probe.pages.view_output import text_lines, view_lines
from tui_probe.pages.views import kind_of
from tui_probe.pages.views.original_sass import OriginalSassView
from tui_probe.probekit.lines import LineMeasure
from tui_probe.probekit.probe_results import choose_target
from tui_probe.toolchain import Tool, find_disassembler
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Trace
from tui_probe.trace.source_lines import SourceLine, SourceLines

if TYPE_CHECKING:
    from tui_probe.probekit.shown_results import JoinedResult
    from tui_probe.trace.model import KernelFacts

DATA = Path(__file__).parents[1] / "data"
NAME = "calls_plain"
SIDES = ("pruned", "probed")
CUBINS = {side: lzma.decompress((DATA / "sass" / f"{NAME}.{side}.bin.xz").read_bytes()) for side in SIDES}
GRAFTED = f"{NAME}\n1\n1\n1,16\ncallback block_sched\nway graft\ngrafted 0 144 appended 384\n"
BOTH = ((80, 24), (200, 50))


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return open_trace(write_kernels(tmp_path / "trace"))


def write_kernels(directory: Path) -> Path:
    """A trace: kernel 0 is grafted; kernel 1, of the same code, was left unchanged and has the image only."""
    writer = TraceWriter(directory)
    writer.start()
    folder = writer.kernel(0, NAME, ptxas=False, way="graft")
    (folder / "kernel.info").write_text(GRAFTED)
    for side, cubin in CUBINS.items():
        (folder / f"{side}.bin").write_bytes(cubin)
    folder = writer.kernel(1, NAME, "skipped", reason="no PTX in image")
    folder.mkdir()
    (folder / "original.bin").write_bytes(CUBINS["pruned"])
    writer.exit()
    return writer.directory


@pytest.fixture
def _told(monkeypatch: pytest.MonkeyPatch) -> None:
    told_machine_code(monkeypatch)


def told_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output of nvdisasm 13.0 for these cubins, in place of the program."""

    def told(_: Tool, cubin: Path, symbol: int) -> str:
        content = cubin.read_bytes()
        assert symbol == Cubin.read(content).kernel_symbol(NAME).number
        side = next(side for side, known in CUBINS.items() if known == content)
        return (DATA / "sass" / f"{NAME}.{side}.txt").read_text()

    tool = Tool(Path("nvdisasm"), (13, 0), "13.0.0")
    monkeypatch.setattr("tui_probe.pages.code.kernel_sass.find_disassembler", lambda: tool)
    monkeypatch.setattr("tui_probe.pages.code.kernel_sass.disassemble", told)


def opened(trace: Trace, name: str, kernel: str) -> Document:
    choice = choose_target(trace, kind_of(name), kernel)
    assert choice.missing_reason is None
    view = kind_of(name).open(choice.source, no_progress)
    assert isinstance(view, Document)
    return view


@pytest.mark.usefixtures("_told")
@pytest.mark.parametrize(("kernel", "name"), [("0", "grafted"), ("1", "original")])
def test_the_machine_code(trace: Trace, kernel: str, name: str) -> None:
    golden_view(f"without_ptx/{name}", opened(trace, "sass", kernel))


@pytest.mark.usefixtures("_told")
def test_added_code_stands_below_the_instruction_that_it_replaced(trace: Trace) -> None:
    view = opened(trace, "sass", "0")
    record = view.record()
    assert json.loads(json.dumps(record)) == record
    lines = [line for line in record["lines"] if line["address"]]
    pruned = [line for line in lines if line["side"] == "pruned"]
    assert [line["address"] for line in pruned if line["change"] == "changed"] == ["0x0000", "0x0090"]
    assert not [line for line in lines if line["change"] == "removed"]
    added = [line for line in lines if line["change"] == "added"]
    assert {line["probe"] for line in added} == {"block_sched"}
    assert all(int(line["address"], 16) >= 384 for line in added)
    assert {line["source"] for line in added} == {None}
    places = [line["address"] for line in lines if line["side"] == "probed" or line["change"] != "changed"]
    assert places[:3] == ["0x0000", "0x0180", "0x0190"]
    assert places[places.index("0x0090") + 1] == "0x01d0"


@pytest.mark.usefixtures("_told")
def test_instructions_that_stayed_have_their_offsets(trace: Trace) -> None:
    code = read_code(trace.kernels[0], no_progress)
    assert code.purposes["pruned"] == code.codes["pruned"].addresses
    offsets = [at for at in code.purposes["probed"] if at is not None]
    assert offsets == [at for at in code.codes["pruned"].addresses if at is not None]
    assert not code.has_ptx_lines


@pytest.mark.usefixtures("_told")
def test_code_that_was_not_probed_has_its_source_lines(trace: Trace) -> None:
    record = opened(trace, "sass", "1").record()
    assert record["measured"] is None
    assert record["counts"]["all"]["original"] == sum(line["address"] is not None for line in record["lines"])
    assert any((line["source"] or "").startswith("calls.cu:") for line in record["lines"])


def test_unprobed_code_keeps_the_source_line_of_other_pages() -> None:
    """A probe in PTX leaves the SASS of the program: both name source lines, and nothing else in common."""
    lines = ["f:", "    LDC R1, c[0x0][0x28]", "    LDG.E R2, [R4]", "    EXIT"]
    code = SassCode(lines, [None, 0, 16, 32], ["", "a.cu:4", "a.cu:4", "a.cu:5"], count_classes(lines))
    of_ptx = {30: SourceLine("/src/a.cu", 4), 31: SourceLine("/src/a.cu", 4), 40: SourceLine("/src/a.cu", 9)}
    kernel = cast("KernelFacts", SimpleNamespace(demangled="f"))
    view = OriginalSassView(kernel, "nvdisasm", code, SourceLines(of_ptx))
    load = view.place_of(31, 80)
    assert load is not None
    assert "LDG.E" in "".join(text for text, _ in view.lines(80)[load])
    assert view.spot(load, 80) == Spot((30, 31))
    assert view.place_of_spot(Spot((40, 30)), 80) == load
    assert view.target_view() == "ptx"
    assert view.line_facts(load, 80) == ["a.cu:4", "2 lines of PTX, starting at line 30"]
    assert view.spot(load + 1, 80) == Spot()
    assert view.place_of(40, 80) is None
    assert view.missing_reason(Spot((40,))) == "a.cu:9 has no SASS"
    assert view.missing_reason(Spot((50,))) == "PTX line 50 has no source line, so its instructions are unknown"
    bare = OriginalSassView(kernel, "nvdisasm", replace(code, sources=[""] * 4), SourceLines(of_ptx))
    assert bare.missing_reason(Spot((30,))) == "this SASS has no source lines, so its instructions are unknown"


@pytest.mark.usefixtures("_told")
def test_measurement_is_at_the_instruction_of_its_offset(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    code = read_code(trace.kernels[0], no_progress).codes["pruned"]
    load = next(at for at, text in zip(code.addresses, code.lines, strict=True) if "LDG" in text and at is not None)
    result = SimpleNamespace(simulated=False)
    of = cast(
        "JoinedResult", SimpleNamespace(launch_label="launch 0 of #0", name="p", results=(result,), newest_launch=None)
    )
    measures = LineMeasures(of, (MeasureColumn(LineMeasure("requests"), {load: 4711}),))
    monkeypatch.setattr("tui_probe.pages.views.sass.measures_of", lambda _: measures)
    view = opened(trace, "sass", "0")
    view.press("fold")
    lines = list(text_lines(view_lines(view, 120, None)))
    (place,) = (number for number, line in enumerate(lines) if "4 711" in line and "LDG" in line)
    parts = view.line_facts(place, 120)
    assert parts[-1] == f"offset {load:#06x}"
    assert "4711" in " ".join(parts).replace(" ", "")
    assert view.ptx_line(place, 120) == load
    rows = [line for line in view.record()["lines"] if line["requests"] is not None]
    assert [(row["side"], row["address"], row["ptx_line"]) for row in rows] == [
        (side, f"{load:#06x}", None) for side in SIDES
    ]


@pytest.mark.parametrize("page", ["ptx", "diff"])
def test_pages_of_ptx_name_the_page_that_has_the_code(trace: Trace, page: str) -> None:
    reasons = [choose_target(trace, kind_of(page), kernel).missing_reason or "" for kernel in ("0", "1")]
    assert reasons[0].startswith("the kernel was probed in SASS and has no PTX")
    assert reasons[1].startswith("no PTX in image")
    assert all(words.endswith("the kernel's code is on the page SASS") for words in reasons)


def test_the_first_page_leads_to_the_machine_code(trace: Trace) -> None:
    for kernel in ("0", "1"):
        view = opened(trace, "summary", kernel)
        assert view.target_view() == "sass"
        assert "no PTX: the page SASS shows the code" in "\n".join(text_lines(view_lines(view, 80, None)))


def test_without_nvdisasm_it_says_what_to_install(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_probe.pages.code.kernel_sass.find_disassembler", lambda: None)
    for kernel in ("0", "1"):
        assert "nvidia-cuda-nvdisasm" in (choose_target(trace, kind_of("sass"), kernel).missing_reason or "")


@pytest.mark.skipif(find_disassembler() is None, reason="no nvdisasm here")
def test_show_needs_no_probe(trace: Trace, capfd: pytest.CaptureFixture[str]) -> None:
    image = trace.kernels[1].file("original.bin")
    assert image is not None
    image.write_bytes((DATA / "ptx" / "image.no_ptx.cubin").read_bytes())
    assert main(["show", "sass", str(trace.directory), "--kernel", "1"]) != 0
    assert "the image has no SASS for sm_" in capfd.readouterr().err
    image.write_bytes(CUBINS["pruned"])
    assert main(["show", "sass", str(trace.directory), "--kernel", "1"]) == 0
    assert "EXIT" in capfd.readouterr().out


def test_the_cubin_of_a_device_out_of_a_fatbin() -> None:
    image = (DATA / "ptx" / "image.none.fatbin").read_bytes()
    cubin, _ = find_cubin(image, "zero")
    assert "zero" in cubin.kernels
    with pytest.raises(ImageError, match="no SASS for sm_130"):
        find_cubin(image, "zero", 130)
    with pytest.raises(ImageError, match="no SASS of absent"):
        find_cubin(image, "absent")


def test_damaged_graft_line_is_reported(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Taken for PTX, the code would be compared line by line, as if the assembler had made both."""
    told_machine_code(monkeypatch)
    path = trace.kernels[0].file("kernel.info")
    assert path is not None
    path.write_text(GRAFTED.replace("grafted 0 144", "grafted 0 1x4"))
    with pytest.raises(TraceError, match=r"kernel.info, 'grafted': expected a count, not '1x4'"):
        opened(trace, "sass", "0")
