"""Stalls measured on an NVIDIA H200 (driver 580, CUDA 13.0): Triton's attention with PTX, and three CUDA kernels."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.recorded import H200, unpacked
from tui_probe.binaries.cubin import Cubin
from tui_probe.cli import main as front
from tui_probe.draw.spans import plain
from tui_probe.draw.view import Document, no_progress
from tui_probe.pages.all_lines import ALL_LINES_COLUMNS, measured_lines, ranked_lines
from tui_probe.pages.code.line_measures import measures_of
from tui_probe.pages.views import kind_of
from tui_probe.probekit.measured import analyse_results
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probes.stall_sites.analysis import Stalls
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.wait_sites import wait_sites
from tui_probe.trace.follow import open_trace
from tui_probe.trace.sites import read_sites
from tui_probe.verdicts.findings import findings_by_probe
from tui_probe.verdicts.kernel_findings import findings_of_result

if TYPE_CHECKING:
    from pathlib import Path

WGMMA, BARRIER = 0x1260, 0x3090
"""Offsets of the two longest waits of attention: the first waits for the product of query and key of its line, although
the line table says that most of its instructions are of the second product, line 37.
"""
WGMMA_SHARE = 0.1295
WGMMA_MEDIAN, BARRIERS_MEDIAN = 0.12915, 0.05922
"""Sums over sites of the medians over launches, which comparison uses."""
GATHER, ROW_SUM = 2, 3
NAMES = ("stencil(float const*, float*)", "gather(float const*, int const*, float*)", "row_sum(float const*, float*)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stalls")


@pytest.fixture(scope="module")
def attention(folder: Path) -> Path:
    return unpacked(H200 / "stalls_attention", folder)


@pytest.fixture(scope="module")
def cuda(folder: Path) -> Path:
    return unpacked(H200 / "stalls_cuda", folder)


def view_of(name: str, trace: Path, kernel: int = 1) -> Document:
    opened = open_trace(trace)
    view = kind_of(name).open(ViewSource(opened, opened.kernels[kernel]), no_progress)
    assert isinstance(view, Document)
    return view


def document(capsys: pytest.CaptureFixture[str], *command: str) -> Any:
    assert front.main([*command, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def output(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    assert front.main([*command]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_results_and_lines_of_a_narrow_window_name_launches_and_kernel(cuda: Path) -> None:
    results = [plain(line) for line in view_of("results", cuda, GATHER).lines(78)]
    assert [line.split()[0] for line in results[4:8]] == ["2", "11", "20", "29"]
    assert plain(view_of("lines", cuda, GATHER).lines(78)[0]) == " gather, launches 83, 86 of #2, -p stall_sites"


@pytest.mark.parametrize("name", ["attention", "cuda"])
def test_measured_waits_of_a_launch_are_at_most_warp_life(name: str, request: pytest.FixtureRequest) -> None:
    trace = open_trace(request.getfixturevalue(name))
    launches = [result.analysis for kernel in trace.kernels for result in analyse_results(trace, kernel)]
    stalls = [launch for launch in launches if isinstance(launch, Stalls) and launch.life]
    assert len(stalls) >= 4
    for launch in stalls:
        assert 0 <= sum(site.measured_cycles for site in launch.sites) <= launch.life


def test_page_ranks_the_measured_waits_of_all_groups(attention: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stalls = document(capsys, "show", "stalls", f"{attention}:1")["data"]
    sites = stalls["sites"]
    assert stalls["launches"] == [33, 34, 35, 31]
    assert [site["offset"] for site in sites[:2]] == [WGMMA, BARRIER]
    longest = sites[0]
    assert (longest["sass"], longest["line"], longest["waits_for"]) == ("WARPGROUP", 32, "wgmma")
    assert (longest["producer"], longest["executions"]) == ("HGMMA attention.py:32", 8192)
    assert longest["share"] == pytest.approx(WGMMA_SHARE, abs=1e-4)
    assert longest["measured_cycles"] <= longest["cycles"] <= longest["measured_cycles"] + 48 * 8192
    assert sites[1]["producer"] is None
    shares = [site["share"] for site in sites if site["executions"]]
    assert shares == sorted(shares, reverse=True)
    text = output(capsys, "show", "stalls", f"{attention}:1")
    assert text.index("0x1260") < text.index("0x3090")


@pytest.mark.parametrize("name", ["attention", "cuda"])
def test_recorded_producers_are_those_of_the_recorded_cubin(name: str, request: pytest.FixtureRequest) -> None:
    trace: Path = request.getfixturevalue(name)
    sites = 0
    for path in trace.glob("kernel/*/stall_sites*/sites.json"):
        cubin = Cubin.read((path.parent / "pruned.bin").read_bytes())
        target = GraftTarget.from_cubin(cubin, *cubin.kernels)
        waits, sources = {site.offset: site for site in wait_sites(target)}, target.source_lines()
        (probe,) = read_sites(path.parent) or ()
        for site in probe.sites:
            if site.wait is not None:
                sites += 1
                named = [producer.offset for producer in waits[site.instruction.line].report_order(sources)]
                assert [producer.line for producer in site.wait.producers] == named[:16]
    assert sites > 20


def test_group_of_wgmma_with_several_lines_has_the_line_of_the_wait(attention: Path) -> None:
    """The instruction that completes the group is named after it."""
    (path,) = attention.glob("kernel/1_*/stall_sites/pruned.bin")
    cubin = Cubin.read(path.read_bytes())
    target = GraftTarget.from_cubin(cubin, *cubin.kernels)
    sources = target.source_lines()
    (site,) = (site for site in wait_sites(target) if site.offset == WGMMA)
    lines = [sources[producer.offset][1] for producer in site.report_order(sources)]
    assert (lines[0], sorted(lines[1:8])) == (32, [31, 37, 37, 37, 37, 37, 37])
    # The second product of the previous iteration is under way, too, and ends before.
    before = site.report_order(sources)[8:]
    assert [producer.offset for producer in before[:2]] == [BARRIER - 16, BARRIER - 32]
    assert [(producer.from_previous, producer.is_newest) for producer in before] == [(True, False)] * 8
    assert site.report_order(sources)[1].offset == WGMMA - 16
    without_line = {at: source for at, source in sources.items() if at != WGMMA}
    assert site.report_order(without_line)[0].offset == WGMMA - 16


EXPLAINED = {"±": "± is the", "max": "mean, max:", "executions": "“executions”:", "clock reads": "clock reads:"}
"""Beginning of the note on each column that narrow pages lack."""


@pytest.mark.parametrize("width", [80, 100, 120, 160, 200])
@pytest.mark.parametrize("kernel", ["attention", "stencil", "gather"])
def test_page_explains_the_columns_that_it_shows(attention: Path, cuda: Path, width: int, kernel: str) -> None:
    trace, number = {"attention": (attention, 1), "stencil": (cuda, 1), "gather": (cuda, GATHER)}[kernel]
    view = view_of("stalls", trace, number)
    lines = ["".join(part for part, _ in line) for line in view.lines(width)]
    titles, notes = f" {lines[1]} ", " ".join(" ".join(lines[view.pinned(width) + view.row_count() :]).split())
    assert {title for title in EXPLAINED if f" {title} " in titles} == {
        title for title, note in EXPLAINED.items() if note in notes
    }
    has_waits_kept = kernel != "attention"  # whose uniform registers had no room for the longest wait
    assert (" max " in titles) is (has_waits_kept or width == 200)
    assert ("max –: the maximum was not recorded (too few free uniform registers" in notes) is (
        not has_waits_kept and width == 200
    )


def test_page_is_written_as_a_picture(cuda: Path, tmp_path: Path) -> None:
    """The SVG has the cells of the text; a PNG needs an extra."""
    files = tmp_path / "stalls.svg", tmp_path / "stalls.png"
    assert front.main(["show", "stalls", f"{cuda}:{GATHER}", "--width", "120", "--svg", str(files[0])]) == 0
    svg = files[0].read_text().replace("&#160;", " ").replace("\xa0", " ")
    assert all(text in svg for text in ("67%", "0x0140", "long.cu:19", "17 647", "measured waits: 97% of warp life"))
    pytest.importorskip("matplotlib")
    assert front.main(["show", "stalls", f"{cuda}:{GATHER}", "--width", "120", "--png", str(files[1])]) == 0
    assert files[1].read_bytes().startswith(b"\x89PNG\r\n")


def test_page_of_a_launch_has_the_nearest_launch_of_each_group(cuda: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert document(capsys, "show", "stalls", f"{cuda}:1")["data"]["launches"] == [76, 79, 82, 85]
    assert document(capsys, "show", "stalls", f"{cuda}:1@16")["data"]["launches"] == [16, 19, 22, 10]
    assert "A row shows the launch nearest to launch 16 of its group" in output(
        capsys, "show", "stalls", f"{cuda}:1@16"
    )


@pytest.mark.parametrize("page", ["stalls", "source", "sass"])
def test_show_chooses_the_kernel_with_most_gpu_time(cuda: Path, page: str, capfd: pytest.CaptureFixture[str]) -> None:
    times = {kernel.index: kernel.gpu_time.total_ns for kernel in open_trace(cuda).kernels if kernel.gpu_time}
    assert max(times, key=times.__getitem__) == GATHER
    assert front.main(["show", page, str(cuda), "--format", "json"]) == 0
    captured = capfd.readouterr()
    assert json.loads(captured.out)["kernel"]["index"] == GATHER
    assert "showing #2 of 4 kernels (the first kernel by GPU time that has results and this page);" in captured.err
    assert front.main(["show", page, str(cuda), "-k", "regex:stencil|gather", "--format", "json"]) == 0
    captured = capfd.readouterr()
    assert json.loads(captured.out)["kernel"]["index"] == GATHER
    assert "showing #2; regex:stencil|gather also matches #1" in captured.err


def test_source_has_the_sum_of_a_line(attention: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = document(capsys, "show", "source", f"{attention}:1")["data"]["files"]
    lines = {line["line"]: line for line in files[0]["lines"]}
    assert lines[32]["of_warp_life"] == pytest.approx(WGMMA_SHARE, abs=1e-4)
    assert lines[31]["of_warp_life"] == pytest.approx(0.0689, abs=1e-4)
    assert lines[33]["of_warp_life"] is None
    assert "scores = tl.dot(query, key) * scale" in lines[32]["text"]


def test_sass_has_the_wait_of_each_instruction(attention: Path) -> None:
    opened = open_trace(attention)
    measures = measures_of(ViewSource(opened, opened.kernels[1]))
    assert measures is not None
    share = measures.columns[measures.first_column]
    assert share.name == "of warp life"
    assert max(share.numbers, key=share.numbers.__getitem__) == WGMMA
    assert len(share.numbers) == 24
    sass = view_of("sass", attention)
    sass.press("level")  # all probed instructions
    place = sass.place_of(WGMMA, 200)
    assert place is not None
    text = "".join(part for part, _ in sass.lines(200)[place])
    assert "13%" in text
    assert "WARPGROUP" in text


def test_findings_name_the_longest_wait(attention: Path, cuda: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        "attention.py:32 (WARPGROUP) waits 13% of warp life for HGMMA attention.py:32 (wgmma, 343 cycles each)"
    ) in output(capsys, "report", str(attention))
    report = output(capsys, "report", str(cuda))  # copies of a loop are one line; shares of launches add up to 101 %
    wait = "long.cu:19 (2 SASS instructions) waits 97% of warp life for LDG long.cu:19 (global memory, 3 131 cycles"
    assert wait in report
    assert "long.cu:13 (20 × FADD) waits about 100% of warp life for LDG long.cu:13" in report


def test_brief_of_several_instructions_is_plural(cuda: Path) -> None:
    trace = open_trace(cuda)
    briefs = [
        noted.finding.brief
        for kernel in trace.kernels
        for found in findings_by_probe(ViewSource(trace, kernel))
        for noted in findings_of_result(kernel, found)
        if noted.finding.key == "longest_wait"
    ]
    assert briefs == ["waits about 100%: 20 × FADD", "waits 97%: 2 SASS instructions", "waits 49%: 4 × FADD"]


def test_trace_equals_itself(attention: Path, cuda: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = document(capsys, "compare", str(attention), str(attention))
    assert {kernel["verdict"] for kernel in same["kernels"]} == {"same"}
    assert not same["findings"]  # waits are compared by line
    waits = {wait["line"]: wait for wait in same["waits"]}
    assert waits["attention.py:32"]["before"] == pytest.approx(WGMMA_MEDIAN, abs=1e-5)
    assert waits["attention.py:31"]["before"] == pytest.approx(BARRIERS_MEDIAN, abs=1e-5)
    assert {wait["difference"] for wait in same["waits"]} == {0}
    same = document(capsys, "compare", str(cuda), str(cuda))
    assert {kernel["verdict"] for kernel in same["kernels"]} == {"same"}
    assert {wait["difference"] for wait in same["waits"]} == {0}
    assert {wait["kernel"] for wait in same["waits"]} == {*NAMES}


def test_page_says_what_its_errors_exclude(cuda: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "show", "stalls", f"{cuda}:{ROW_SUM}")
    assert "a full SM may hide more than 48 cycles, and the probe's delay may change a wait" in " ".join(text.split())
    assert "so the true value is at most" not in text


def test_page_says_that_the_probe_lowers_occupancy(cuda: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The probe takes registers of which row_sum has none to spare."""
    text = output(capsys, "show", "stalls", f"{cuda}:{ROW_SUM}")
    assert "the probe lowers the number of resident blocks per SM: 8 → 6. Fewer warps per SM change the waits" in text
    assert "resident blocks per SM" not in output(capsys, "show", "stalls", f"{cuda}:{GATHER}")


def test_lines_of_all_kernels_have_the_share_of_warp_life(cuda: Path) -> None:
    """The share of a line of row_sum is that of page Stalls, not a part of the shares of all lines."""
    opened = open_trace(cuda)
    lines = measured_lines(opened, kernels=[opened.kernels[ROW_SUM]]).lines
    assert {(line.heading, line.share == line.value) for line in lines} == {("share of warp life", True)}
    title, first, second, *_ = ("".join(part for part, _ in line).rstrip() for line in ranked_lines(lines, 120))
    assert title == " lines by share of warp life, stall_sites"
    assert first.split() == ["████", "51%", "long.cu:25", "8", "instructions"]
    assert second.split()[1:4] == ["8%", "long.cu:28", "BAR"]
    assert "cycles, waits for barrier, 512 executions" in second
    titles = [column.title for column in ALL_LINES_COLUMNS]
    assert titles.index("share") == titles.index("value") + 1
    assert max(line.share for line in measured_lines(opened).lines) == pytest.approx(0.67, abs=0.01)


MEASURED = {"share", "waited", "worst_share"}
"""Figures of waits."""


@pytest.mark.parametrize(("before", "after"), [(GATHER, ROW_SUM), (1, GATHER)])
def test_kernels_without_a_common_line_have_no_total(
    cuda: Path, capsys: pytest.CaptureFixture[str], before: int, after: int
) -> None:
    sides = f"{cuda}:{before}", f"{cuda}:{after}"
    data = document(capsys, "compare", *sides)
    assert data["waits"]
    assert {(wait["difference"], wait["compared"]) for wait in data["waits"]} == {(None, False)}
    assert all(None in (wait["before"], wait["after"]) for wait in data["waits"])
    assert not MEASURED & {figure["figure"] for figure in data["figures"]}
    text = output(capsys, "compare", *sides)
    assert text.startswith("the kernels differ, so there is no verdict ")
    assert "no total of measured waits: no line was measured completely in both A and B" in text
    assert "none" not in text


def test_launches_that_measured_other_groups_have_no_figures(cuda: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Launches 76 and 82 are of one round over the groups: the page of each has the same results."""
    sides = f"{cuda}:1@76", f"{cuda}:1@82"
    data = document(capsys, "compare", *sides)
    assert not data["waits"]
    assert not MEASURED & {figure["figure"] for figure in data["figures"]}
    text = output(capsys, "compare", *sides)
    assert text.startswith("no value got better or worse A ")
    assert "not compared: results that the pages of A and B have in common" in text
    former = document(capsys, "compare", f"{cuda}:1@4", f"{cuda}:1@82")
    assert [wait["compared"] for wait in former["waits"]] == [True]
    assert [figure["figure"] for figure in former["figures"] if figure["figure"] in MEASURED] == ["share"]


@pytest.mark.parametrize(("kernel", "longest"), [(1, "FADD"), (GATHER, "STG"), (ROW_SUM, "FADD")])
def test_longest_single_wait_is_kept(cuda: Path, capsys: pytest.CaptureFixture[str], kernel: int, longest: str) -> None:
    sites = document(capsys, "show", "stalls", f"{cuda}:{kernel}")["data"]["sites"]
    assert sites[0]["sass"] == longest
    assert sites[0]["producer"].startswith("LDG long.cu:")
    waited = [site for site in sites if site["measured_cycles"]]
    assert waited
    assert all(site["longest"] >= site["mean"] for site in waited if site["longest"])


def test_ptx_has_waits_at_the_line_of_the_instruction(attention: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The cubin of Triton has a table of PTX lines."""
    data = document(capsys, "show", "ptx", f"{attention}:1")["data"]
    text = data["original"].splitlines()
    shares = {line["line"]: line["of_warp_life"] for line in data["measured"]["lines"]}
    longest = max(shares, key=shares.__getitem__)
    assert text[longest - 1].startswith("wgmma.wait_group.sync.aligned")
    assert shares[longest] == pytest.approx(WGMMA_SHARE, abs=1e-4)
    view = view_of("ptx", attention)
    place = view.place_of(WGMMA, 120)
    assert place is not None
    assert view.ptx_line(place, 120) == WGMMA
    assert view.marked_line() == (WGMMA, "the most: 13% of warp life")
    assert place in view.anchors(120)
    assert view.target_view() == "sass"


def test_page_says_why_the_cost_is_not_known(cuda: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All launches were probed."""
    text = output(capsys, "show", "stalls", f"{cuda}:1")
    assert "slowdown with the probe: –, because no launch shape was timed both with and" in text
    assert "without the probe; omit --launches all, or run with --benchmark --save-results" in text


def test_page_says_why_sites_are_not_measured(cuda: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "show", "stalls", f"{cuda}:1")
    assert (
        "4 wait sites not measured, because all 4 groups are full: sites that disturb each other must be in different"
        " groups: 0x" in text
    )


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("page", ["ptx", "source"])
def test_heading_of_code_is_whole_on_narrow_pages(cuda: Path, page: str, width: int) -> None:
    view = view_of(page, cuda, GATHER)
    lines = ["".join(part for part, _ in line) for line in view.lines(width)]
    heading = " ".join(" ".join(lines[: view.pinned(width)]).split())
    assert "of warp life, -p stall_sites, launches 83, 86; ! the most" in heading
    assert heading.endswith("at the first instruction of the line") is (page == "ptx")
    assert max(map(len, lines[: view.pinned(width)])) <= width
    first = view.anchors(width)[0]
    assert "%" in lines[first], "the rows are below the heading"
    assert view.ptx_line(first, width) is not None


def test_ptx_without_a_table_has_the_sum_of_a_source_line(
    cuda: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    data = document(capsys, "show", "ptx", f"{cuda}:{GATHER}")["data"]
    text = data["original"].splitlines()
    shares = {line["line"]: line["of_warp_life"] for line in data["measured"]["lines"]}
    longest = max(shares, key=shares.__getitem__)
    before = [line for line in text[: longest - 1] if ".loc" in line]
    assert before[-1].split()[2] == "19"
    assert shares[longest] == pytest.approx(0.974, abs=0.01)
    assert sum(".loc" in line and line.split()[2] == "19" for line in before) == 1
    shown = output(capsys, "show", "ptx", f"{cuda}:{GATHER}")
    assert "the sum of a source line is at the first instruction of the line" in shown
