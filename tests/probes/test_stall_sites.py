"""Stalls: results of a grafted kernel with known sums. Only a GPU runs such a graft: tests/gpu measures real waits."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.engine.kernels import DATA
from tests.golden import golden
from tests.recorded import H200, SIMULATED
from tests.sass.conftest import assembled
from tests.sass.test_spills import spilling
from tests.trace.make import TraceWriter, result_bytes
from tui_probe.binaries.cubin import Cubin
from tui_probe.cli import main as front
from tui_probe.draw.view import no_progress
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.grafting.grafts import Grafter
from tui_probe.pages.code.line_measures import measures_of
from tui_probe.pages.views import kind_of
from tui_probe.pages.views.sass import KIND, SassView
from tui_probe.probe_files.loading import load_probe
from tui_probe.probe_model.probe import LeastShare
from tui_probe.probekit.measured import analyse_result, known_probe
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.probe import MeasuredWait, MeasuredWaits
from tui_probe.probes.stall_sites.analysis import (
    DELAY,
    GROUPS,
    MIN_PERCENT,
    LineWaits,
    Stalls,
    StallSite,
    measured_text,
)
from tui_probe.sass.accesses import stack_accesses
from tui_probe.sass.target import GraftTarget
from tui_probe.toolchain import find_tools
from tui_probe.trace import source_lines
from tui_probe.trace.follow import open_trace
from tui_probe.trace.kernel_files import Offset
from tui_probe.trace.run_info import RunInfo
from tui_probe.trace.sites import SiteInstruction, SiteWait, read_sites
from tui_probe.trace.source_lines import SourceLine
from tui_probe.ui import rerun
from tui_probe.ui.screens.further_pages import kernel_tab
from tui_probe.verdicts import limiter, wait_changes
from tui_probe.verdicts.kernel_matching import match_pair
from tui_probe.verdicts.limiter import NcuBytes, latency_cause

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["assembled"]

CUBIN = DATA / "attn_fwd.sm_90a.cubin"
GRID, BLOCK, WARPS = (4, 1, 1), (64, 1, 1), 8
LIFE = 10_000
SITE_BYTES, WARP_SIZE = 24, 32
MARKED, SITES = 1, 4


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of attention with a launch of the first group: site 0 waits longest, each next one half as long."""
    writer = started_trace(tmp_path_factory.mktemp("stalls") / "trace")
    folder = writer.kernel(0, "attn_fwd")
    launch = writer.launch(0, GRID, BLOCK)
    writer.save(0, launch, group_result(folder, "stall_sites", 8192))
    writer.benchmark(0, launch, original=1.0, probed=1.08)
    writer.exit()
    return writer.directory


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace with a launch of the first group and one of the second, which has the longest wait."""
    writer = started_trace(tmp_path_factory.mktemp("groups") / "trace")
    folder = writer.kernel(0, "attn_fwd")
    for name, most in (("stall_sites", 8192), ("stall_sites_2", 16384)):
        (folder / name).mkdir()
        result = group_result(folder / name, name, most)
        writer.lines(f"[probing] 0 probed registers 18 local 0 shared 1024 blocks 12 probe {name} reason -")
        launch = writer.launch(0, GRID, BLOCK)
        path = writer.save(0, launch, result)
        log = writer.directory / "event.log"
        saved = f"save result/{path.name} size {len(result)} kernel 0 launch {launch}"
        log.write_text(log.read_text().replace(saved, f"{saved} probe {name}"))
    writer.exit()
    return writer.directory


def started_trace(directory: Path) -> TraceWriter:
    writer = TraceWriter(directory)
    writer.start(device="NVIDIA H100", sms=132)
    return writer


def group_result(
    folder: Path, name: str, most: int, cubin: Cubin | None = None, kernel: str = "attn_fwd", idle: int = 0
) -> bytes:
    """Write the files of a grafted kernel, and return a result in which site 0 waits ``most`` cycles, and the last
    ``idle`` sites were not executed.
    """
    if not find_tools("ptxas"):
        pytest.skip("no ptxas on this machine: install nvidia-cuda-nvcc")
    grafter = Grafter(load_probe(name), Assembler(), samples_blocks=False)
    grafted = grafter.graft(cubin or Cubin.read(CUBIN.read_bytes()), kernel)
    (folder / "kernel.info").write_text(grafted.info)
    (folder / "sites.json").write_text(grafted.sites)
    (folder / "pruned.bin").write_bytes(grafted.pruned_image)
    (folder / "probed.bin").write_bytes(grafted.probed_image)
    sites = next((line.split()[2:] for line in grafted.info.splitlines() if line.startswith("sites 0 ")), [])
    sums = np.array([[most >> number, 16, (most >> number) // 4] for number in range(len(sites))], "<u8").reshape(-1, 3)
    sums[len(sites) - idle :] = 0
    lives = np.full((GRID[0], BLOCK[0] // WARP_SIZE, 1), LIFE, "<u4").view(np.uint8)
    maps = [(WARP_SIZE, np.zeros((GRID[0], BLOCK[0] // WARP_SIZE, 0), np.uint8)), (WARP_SIZE, lives)]
    about = [(SITES, SITE_BYTES, sums.tobytes()), (MARKED, 4, b"\xff")]
    return result_bytes(GRID, BLOCK, maps, about=about)


def test_page_ranks_sites_by_warp_life(
    trace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert front.main(["show", "stalls", str(trace)]) == 0
    golden("stalls.txt", capsys.readouterr().out)


def shown_text(directory: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert front.main(["show", "stalls", str(directory)]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_page_states_launches_and_sample(groups: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown_text(groups, capsys)
    assert "attn_fwd, launches 0–1 of #0" in text
    assert "sample: 4 of 4 blocks in each of 2 launches, 8 warps per block" in text
    assert "slowdown with the probe: –, because no launch shape was timed both" in text


@pytest.mark.parametrize("columns", [80, 120])
def test_title_shows_launches_after_a_long_name(
    groups: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """A C++ name with template arguments is shortened, so that the launches fit behind it."""
    monkeypatch.setenv("COLUMNS", str(columns))
    trace = tmp_path / "trace"  # a folder of its own: answers about a trace are kept
    shutil.copytree(groups, trace)
    name = "void at::native::sort<{}>(float const*, float*)".format(", ".join(["at::native::Descending<float>"] * 6))
    monkeypatch.setattr("tui_probe.trace.kernel_status.demangle", lambda _: name)
    assert front.main(["show", "stalls", str(trace)]) == 0
    title = capsys.readouterr().out.splitlines()[0]
    assert title.strip().startswith("sort<")
    assert title.endswith(", launches 0–1 of #0")


def test_page_names_sites_that_are_not_measured_again(
    groups: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Copy the trace, and let the second group end; another launch measures the first one."""
    directory = shutil.copytree(groups, tmp_path / "trace")
    log = directory / "event.log"
    lines = log.read_text().splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if "probe stall_sites_2" in line and " save " in line)
    lines.insert(place + 1, "[probe] ended kernel 0 launch 1 probe stall_sites_2\n")
    log.write_text("".join(lines))
    text = shown_text(directory, capsys)
    ended = (
        "8 sites not measured in launches queued after the result of launch 1, because no wait of their group reached"
    )
    assert f"{ended} 1% of warp life in that launch: 0x" in text
    assert front.main(["show", "stalls", str(directory), "--format", "json"]) == 0
    sites = json.loads(capsys.readouterr().out)["data"]["sites"]
    assert sum(site["ended"] for site in sites) == 8
    assert {site["launches"] for site in sites} == {1}


def test_groups_without_sites_are_not_missing(
    assembled: Callable[[str, int | str], Cubin], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Graft all groups into a kernel with few waits; only those with sites have a launch."""
    writer = started_trace(tmp_path / "trace")
    folder, cubin = writer.kernel(0, "k"), assembled(FEW_WAITS, 90)
    log, sites = writer.directory / "event.log", {}
    for name in GROUPS:
        (folder / name).mkdir()
        result = group_result(folder / name, name, 8192, cubin, "k")
        info = (folder / name / "kernel.info").read_text()
        note = next((line.removeprefix("note ") for line in info.splitlines() if line.startswith("note ")), "-")
        writer.lines(f"[probing] 0 probed registers 18 local 0 shared 0 blocks 12 probe {name} reason {note}")
        sites[name] = int(info.partition(" sites record 24 cap ")[2].split()[0])
        assert (note == "-") is bool(sites[name])
        if sites[name]:
            launch = writer.launch(0, GRID, BLOCK)
            path = writer.save(0, launch, result)
            saved = f"save result/{path.name} size {len(result)} kernel 0 launch {launch}"
            log.write_text(log.read_text().replace(saved, f"{saved} probe {name}"))
    writer.exit()
    assert sites[GROUPS[0]] > 0 == sites[GROUPS[-1]]
    text = shown_text(writer.directory, capsys)
    assert "k, launch 0 of #0" in text
    assert "sample: 4 of 4 blocks in 1 launch, 8 warps per block" in text
    assert "further groups" not in text
    assert front.main(["report", str(writer.directory)]) == 0
    report = " ".join(capsys.readouterr().out.split())
    assert "not measured by" not in report
    assert f"{GROUPS[-1]} matched no instruction of this kernel" in report


def test_page_has_the_cost_of_each_group(groups: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = shutil.copytree(groups, tmp_path / "trace")
    with (directory / "event.log").open("a") as log:
        for name, probed in (("stall_sites", 1.25), ("stall_sites_2", 1.5)):
            times = f"prologue 0.01 kernel {probed} epilogue - original 1.0 impact {probed} 0"
            log.write(f"[benchmark] {times} kernel 0 launch 0 probe {name}\n")
    assert "slowdown with the probe, one value per group of sites: 1.25×, 1.50× (--benchmark)" in shown_text(
        directory, capsys
    )


def test_page_has_the_cost_by_launches_with_and_without_the_probe(
    groups: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No benchmark: launches 2 to 5 of the same shape ran without the probe, launch 0 took 20 % more."""
    directory = shutil.copytree(groups, tmp_path / "trace")
    times = {0: ("probed", 12_000), 1: ("probed", 11_000)} | {
        launch: ("original", ns) for launch, ns in enumerate((9_900, 10_100, 10_000, 10_000), 2)
    }
    with (directory / "event.log").open("a") as log:
        for launch, (kind, ns) in times.items():
            log.write(f"[time] launch {launch} kernel 0 key 0 {kind} ns {ns} for 1\n")
    text = shown_text(directory, capsys)
    assert "slowdown with the probe, one value per group of sites: 1.20" in text
    assert ", 1.10" in text
    assert "(launches of this run with and without the probe, ± standard error)" in text
    assert front.main(["show", "stalls", str(directory), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["slowdowns"] == pytest.approx([1.2, 1.1])


def test_groups_end_at_the_share_that_the_page_names() -> None:
    for name in GROUPS:
        sites, life = load_probe(name).maps
        assert sites.least == LeastShare(MIN_PERCENT, life.name)


def test_page_folds_sites_that_were_not_executed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    writer = started_trace(tmp_path / "trace")
    folder = writer.kernel(0, "attn_fwd")
    writer.save(0, writer.launch(0, GRID, BLOCK), group_result(folder, "stall_sites", 8192, idle=2))
    writer.exit()
    text = shown_text(writer.directory, capsys)
    assert "2 sites not executed in the sample: 0x2780 tfa.py:8, 0x2900 tfa.py:12" in text
    assert text.count("0x2780") == 1
    assert front.main(["show", "stalls", str(writer.directory), "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)["data"]
    assert [site["executions"] for site in record["sites"]] == [16] * 6 + [0] * 2
    assert len(record["offsets_not_measured"]) == record["sites_not_measured"] == 54
    assert not {site["offset"] for site in record["sites"]} & {*record["offsets_not_measured"]}


FEW_WAITS = """
.visible .entry k(.param .u64 x) {
    .reg .b64 %d<2>; .reg .f32 %f<3>;
    ld.param.u64 %d1, [x];
    ld.global.f32 %f1, [%d1];
    add.f32 %f2, %f1, %f1;
    st.global.f32 [%d1], %f2;
    ret; }
"""
INLINED = """.version 8.1
.target sm_90
.address_size 64
.file 1 "/home/me/b.cu"
.file 2 "/usr/local/cuda/targets/x86_64-linux/include/cuda_pipeline_helpers.h"
.visible .entry k(.param .u64 x) {
	.reg .b64 %d<3>; .reg .f32 %f<3>;
	.loc 1 14 1
	ld.param.u64 %d1, [x];
	.loc 1 15 1
	.loc 2 232 1, function_name $L__info_string0, inlined_at 1 15 1
	ld.volatile.global.f32 %f1, [%d1];
	add.f32 %f2, %f1, %f1;
	.loc 1 16 1
	st.volatile.global.f32 [%d1], %f2;
	ret; }
.section .debug_str {
$L__info_string0: .b8 119, 0
}
"""


def test_page_names_the_call_of_an_inlined_header(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    tools = find_tools("ptxas")
    if not tools:
        pytest.skip("no ptxas on this machine: install nvidia-cuda-nvcc")
    source, binary = tmp_path / "a.ptx", tmp_path / "a.cubin"
    source.write_text(INLINED)
    subprocess.run([tools[0].path, "-arch=sm_90", "-lineinfo", source, "-o", binary], check=True)
    writer = started_trace(tmp_path / "trace")
    folder = writer.kernel(0, "k")
    cubin = Cubin.read(binary.read_bytes())
    writer.save(0, writer.launch(0, GRID, BLOCK), group_result(folder, "stall_sites", 8192, cubin, "k"))
    writer.exit()
    assert "FADD b.cu:15 global memory LDG b.cu:15" in shown_text(writer.directory, capsys)
    assert front.main(["show", "stalls", str(writer.directory), "--format", "json"]) == 0
    (kernel,) = open_trace(writer.directory).kernels
    (probed,) = kernel.by_probe()
    probe, row = known_probe(probed), probed.find_newest_result()
    assert probe.measured_waits is not None
    assert row is not None
    waits = probe.measured_waits(analyse_result(probed.trace, probed, row).analysis).waits
    assert ("b.cu:15", "LDG b.cu:15") in {(wait.place, wait.producer) for wait in waits}
    (site,) = (own for own in json.loads(capsys.readouterr().out)["data"]["sites"] if own["sass"] == "FADD")
    assert (site["line"], site["call_file"], site["call_line"]) == (232, "/home/me/b.cu", 15)
    assert site["producer"] == "LDG b.cu:15"
    for page in ("lines", "source"):
        assert front.main(["show", page, str(writer.directory), "--format", "csv"]) == 0
        head, *rows = csv.reader(capsys.readouterr().out.splitlines())
        columns = [dict(zip(head, row, strict=True)) for row in rows]
        measured = {(row["file"], row["line"] if page == "source" else row["source_line"]) for row in columns}
        assert ("/home/me/b.cu", "15") in measured
        assert {file for file, _ in measured} == {"/home/me/b.cu"}


def built(ptx: str, directory: Path, waited: int) -> Path:
    """A trace of four launches of the kernel that ptxas makes of PTX with source lines."""
    tools = find_tools("ptxas")
    if not tools:
        pytest.skip("no ptxas on this machine: install nvidia-cuda-nvcc")
    source, binary = directory.with_suffix(".ptx"), directory.with_suffix(".cubin")
    source.write_text(ptx)
    subprocess.run([tools[0].path, "-arch=sm_90", "-lineinfo", source, "-o", binary], check=True)
    writer = started_trace(directory)
    folder = writer.kernel(0, "k")
    for _ in range(4):
        launch = writer.launch(0, GRID, BLOCK)
        writer.save(0, launch, group_result(folder, "stall_sites", waited, Cubin.read(binary.read_bytes()), "k"))
    writer.exit()
    return directory


def test_comparison_of_builds_has_the_wait_of_a_line_at_another_offset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second build loads and stores another value before; the wait of line 15 moves, and is half as long."""
    more = """	.loc 1 14 1
	ld.volatile.global.f32 %f1, [%d1+64];
	mul.f32 %f1, %f1, %f1;
	st.volatile.global.f32 [%d1+64], %f1;
	.loc 1 15 1
"""
    before = built(INLINED, tmp_path / "before", 8192)
    after = built(INLINED.replace("	.loc 1 15 1\n", more, 1), tmp_path / "after", 4096)
    sites = {}
    for side in (before, after):
        assert front.main(["show", "stalls", str(side), "--format", "json"]) == 0
        record = json.loads(capsys.readouterr().out)["data"]["sites"]
        sites[side] = {(site["call_line"] or site["line"]): site["offset"] for site in record if site["sass"] == "FADD"}
    assert sites[before][15] != sites[after][15]
    document = compared(before, after, capsys)
    waits = {(wait["line"], wait["producer"]): wait for wait in document["waits"]}
    wait = waits["b.cu:15", "LDG b.cu:15"]
    assert wait["compared"]
    assert wait["after"] < wait["before"]
    assert wait["difference"] == pytest.approx(wait["after"] - wait["before"])


@pytest.mark.parametrize(
    ("path", "is_of_toolkit"),
    [
        ("/usr/local/cuda-13.0/bin/../targets/x86_64-linux/include/cuda_pipeline_helpers.h", True),
        ("/venv/lib/python3.12/site-packages/nvidia/cu13/include/cub/block/block_scan.cuh", True),
        ("/home/me/cutlass/include/cute/arch/copy.hpp", False),
        ("/home/me/attention.cu", False),
    ],
)
def test_toolkit_headers_are_known_by_path(path: str, is_of_toolkit: bool) -> None:
    assert (source_lines._TOOLKIT_HEADER.search(path) is not None) is is_of_toolkit


def test_record_has_classes_producers_and_shares(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main(["show", "stalls", str(trace), "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)["data"]
    sites = record["sites"]
    first = sites[0]
    assert first["measured_cycles"] == 8192 - 2 * 16
    assert first["cycles"] == 8192 - 2 * 16 + DELAY * 16
    assert first["share"] == pytest.approx(first["cycles"] / (LIFE * WARPS))
    assert first["executions"] == 16
    assert first["longest"] == 8192 // 4 - 2 + DELAY
    short = sites[-1]
    assert short["cycles"] == 2 * short["measured_cycles"] < 2 * DELAY * 16
    assert {site["waits_for"] for site in sites} >= {"cp.async group", "barrier", "wgmma"}
    assert next(site for site in sites if site["waits_for"] == "wgmma")["producer"].startswith("HGMMA")
    assert next(site for site in sites if site["waits_for"] == "cp.async group")["producer"].startswith("LDGSTS")
    assert record["sites_not_measured"] > 30
    assert record["slowdowns"] == [pytest.approx(1.08)]


def test_finding_names_wait_and_producer(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main(["report", str(trace)]) == 0
    report = " ".join(capsys.readouterr().out.split())
    assert "longest wait" in report
    assert "of warp life" in report


def test_code_shows_lines_of_all_groups(groups: Path) -> None:
    opened = open_trace(groups)
    measures = measures_of(ViewSource(opened, opened.kernels[0]))
    assert measures is not None
    share = measures.columns[measures.first_column]
    assert share.name == "of warp life"
    assert len(share.values) == 16
    assert max(share.numbers.values()) == pytest.approx((16384 - 2 * 16 + DELAY * 16) / (LIFE * WARPS), rel=0.01)


def test_code_shows_how_often_spills_are_executed(
    assembled: Callable[[str, int | str], Cubin], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = started_trace(tmp_path / "trace")
    folder = writer.kernel(0, "k")
    cubin = assembled(spilling(), 90)
    writer.save(0, writer.launch(0, GRID, BLOCK), group_result(folder, "stall_sites", 8192, cubin, "k"))
    writer.exit()
    opened = open_trace(writer.directory)
    measures = measures_of(ViewSource(opened, opened.kernels[0]))
    assert measures is not None
    columns = {column.name: column.numbers for column in measures.columns}
    target = GraftTarget.from_cubin(cubin, "k")
    loads = {access.offset for access in stack_accesses(target) if access.is_load and access.depth}
    assert loads & columns["local loads"].keys()
    assert set(columns["local loads"].values()) | set(columns["local stores"].values()) == {16}
    assert "spills or local arrays: page Lines counts their loads" in shown_text(writer.directory, capsys)
    assert front.main(["show", "summary", str(writer.directory)]) == 0
    summary = " ".join(capsys.readouterr().out.split())
    counted = {name: f"{sum(columns[name].values()):,}".replace(",", " ") for name in ("local loads", "local stores")}
    assert f"local memory {counted['local loads']} local loads and {counted['local stores']} local stores" in summary


def test_latency_names_the_longest_wait_of_all_groups(groups: Path) -> None:
    cause = latency_cause(open_trace(groups).kernels[0])
    assert "tfa.py:6 (2 × STS) waits 33% of warp life for LDG tfa.py:6" in cause


def test_sass_leads_from_a_wait_to_its_producer_and_back(trace: Path) -> None:
    opened = open_trace(trace)
    view = KIND.open(ViewSource(opened, opened.kernels[0]), no_progress)
    assert isinstance(view, SassView)
    wait = view.place_of(0x5E0, 200)
    assert wait is not None
    target = view.target(wait, 200)
    assert target is not None
    wait, at_producer = view.place_of(0x5E0, 200), view.place_of_spot(target, 200)
    assert wait is not None
    assert at_producer is not None
    assert view.target_view() == "sass"
    assert view.target(at_producer, 200) == view.spot(wait, 200)
    assert any("waits for global memory: LDG tfa.py:6" in text for text in view.line_facts(wait, 200))
    assert any("STS tfa.py:6 waits for this instruction" in text for text in view.line_facts(at_producer, 200))


def compared(before: Path, after: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert front.main(["compare", str(before), str(after), "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_comparison_is_over_the_instructions_that_both_sides_measured(
    trace: Path, groups: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compare a trace with one group of sites to one with two: the second has the longest wait, and no verdict."""
    monkeypatch.setenv("COLUMNS", "120")
    document = compared(trace, groups, capsys)
    both = [wait for wait in document["waits"] if wait["compared"]]
    assert both
    assert {wait["difference"] for wait in both} == {0}
    lone = [wait for wait in document["waits"] if not wait["compared"]]
    assert {(wait["before"], wait["difference"]) for wait in lone} == {(None, None)}
    assert max(wait["after"] for wait in lone) > max(wait["after"] for wait in both)
    (share,) = (value for value in document["figures"] if value["figure"] == "share")
    assert share["before"] == share["after"] == pytest.approx(sum(wait["before"] for wait in both), abs=0.02)
    assert share["verdict"] is None
    assert not [finding for finding in document["findings"] if "wait" in finding["text"]]
    same = next(wait for wait in both if wait["waits_for"] == "cp.async group")
    assert same["producer"] == "LDGSTS tfa.py:11"
    assert front.main(["compare", str(trace), str(groups)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "waits by line, share of warp life" in text
    assert "tfa.py:9 cp.async group LDGSTS tfa.py:11 6% 6% same" in text
    assert "measured only in B" in text
    assert "compared: 8 SASS instructions that A and B measured" in text
    assert "not compared: 0 instructions of A, 8 of B" in text
    assert front.main(["compare", str(trace), str(groups), "--format", "md"]) == 0
    text = capsys.readouterr().out
    assert "| waits at | for | producer | A | B | change |" in text
    assert "| tfa.py:9 | cp.async group | LDGSTS tfa.py:11 | 6% | 6% | same |" in text
    assert "- compared: 8 SASS instructions that A and B measured" in text


def test_comparison_of_other_groups_has_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each side has measured one group, and not the same."""
    sides = []
    for name in ("stall_sites", "stall_sites_2"):
        writer = started_trace(tmp_path / name)
        folder = writer.kernel(0, "attn_fwd")
        writer.save(0, writer.launch(0, GRID, BLOCK), group_result(folder, name, 8192))
        writer.exit()
        sides.append(writer.directory)
    document = compared(*sides, capsys)
    assert document["waits"]
    assert not any(wait["compared"] for wait in document["waits"])
    assert not [value for value in document["figures"] if value["figure"] in ("share", "worst_share", "waited")]


def compared_sides(
    trace: Path, monkeypatch: pytest.MonkeyPatch, before: MeasuredWaits, after: MeasuredWaits, launches: int = 1
) -> wait_changes.WaitComparison:
    """Compare two sides that measured these waits in each of some launches."""
    opened = open_trace(trace)
    sides = iter([before] * launches + [after] * launches)
    probe = replace(known_probe(opened.kernels[0]), measured_waits=lambda _: next(sides), group=None)
    monkeypatch.setattr(wait_changes, "known_probe", lambda _: probe)
    monkeypatch.setattr(wait_changes, "_analysis_rounds", lambda *_: iter([[None]] * launches))
    source = ViewSource(opened, opened.kernels[0])
    return wait_changes.compare_waits(match_pair(source, source))


def waits_of_side(places: dict[int, tuple[str, str, float]], unmeasured: dict[int, str] | None) -> MeasuredWaits:
    waits = (MeasuredWait(at, name, place, "global memory", "", share) for at, (name, place, share) in places.items())
    return MeasuredWaits(tuple(waits), unmeasured)


@pytest.mark.parametrize(
    ("unmeasured", "difference"), [({}, -0.3), ({0x200: "b.cu:9"}, -0.3), ({0x200: "a.cu:4"}, None), (None, None)]
)
def test_other_code_is_compared_at_lines_that_were_measured_completely(
    trace: Path, monkeypatch: pytest.MonkeyPatch, unmeasured: dict[int, str] | None, difference: float | None
) -> None:
    """Two loads at line 4 became one; an instruction at another line may be missing."""
    before = waits_of_side({0x10: ("FADD", "a.cu:4", 0.3), 0x20: ("FADD", "a.cu:4", 0.2)}, {})
    after = waits_of_side({0x30: ("FFMA", "a.cu:4", 0.2)}, unmeasured)
    comparison = compared_sides(trace, monkeypatch, before, after)
    (change,) = comparison.changes
    assert change.shares == (pytest.approx(0.5), pytest.approx(0.2))
    assert change.difference == (None if difference is None else pytest.approx(difference))
    assert (comparison.values is None) is (difference is None)
    assert change.change_text == ("not compared" if difference is None else "-30 pp")


@pytest.mark.parametrize(
    ("launches", "instruction", "unmeasured", "better", "reason"),
    [
        (4, "FADD", {}, "lower", ""),
        (3, "FADD", {}, "neither", "no verdict: fewer than 4 launches measured an instruction"),
        (4, "FFMA", {}, "lower", ""),
        (4, "FFMA", {0x40: "a.cu:9"}, "neither", "no verdict: the code differs, and a wait may have moved to a line"),
    ],
)
def test_waits_have_a_verdict_if_launches_and_lines_suffice(
    trace: Path,
    monkeypatch: pytest.MonkeyPatch,
    launches: int,
    instruction: str,
    unmeasured: dict[int, str],
    better: str,
    reason: str,
) -> None:
    before = waits_of_side({0x10: ("FADD", "a.cu:4", 0.3), 0x40: ("BAR", "a.cu:9", 0.1)}, {})
    places = {0x10: (instruction, "a.cu:4", 0.2)} | ({} if unmeasured else {0x40: ("BAR", "a.cu:9", 0.1)})
    comparison = compared_sides(trace, monkeypatch, before, waits_of_side(places, unmeasured), launches)
    assert comparison.values is not None
    assert {value.better for value in comparison.values} == {better}
    reasons = [note for note in comparison.notes if note.startswith("no verdict")]
    assert [text[: len(reason)] for text in reasons] == ([reason] if reason else [])


@pytest.mark.parametrize(
    ("unmeasured", "is_compared"), [({}, True), ({0x200: "a.cu:8"}, False), ({0x200: "a.cu:4"}, False), (None, False)]
)
def test_absent_line_counts_as_none_only_if_all_was_measured(
    trace: Path, monkeypatch: pytest.MonkeyPatch, unmeasured: dict[int, str] | None, is_compared: bool
) -> None:
    """An edit moved the wait of line 9 to line 10."""
    before = waits_of_side({0x10: ("FADD", "a.cu:4", 0.3), 0x40: ("BAR", "a.cu:9", 0.5)}, {})
    after = waits_of_side({0x10: ("FFMA", "a.cu:4", 0.2), 0x50: ("BAR", "a.cu:10", 0.4)}, unmeasured)
    comparison = compared_sides(trace, monkeypatch, before, after)
    changes = {change.latest.place: change for change in comparison.changes}
    shares = {place: changes[place].shares for place in ("a.cu:9", "a.cu:10")}
    missing = 0 if is_compared else None
    assert shares == {"a.cu:9": (0.5, missing), "a.cu:10": (missing, 0.4)}
    totals = [value.value for value in comparison.values or ()]
    is_partial_there = unmeasured is None or "a.cu:4" in unmeasured.values()
    assert totals == pytest.approx([0.8, 0.6] if is_compared else [] if is_partial_there else [0.3, 0.2])
    notes = [note.partition(":")[0].partition(" is ")[0] for note in comparison.notes]
    assert ("no total of measured waits" in notes) is is_partial_there
    assert ("“measured waits”" in notes) is (not is_compared and not is_partial_there)


def test_waits_without_source_lines_are_compared_by_offset(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    side = waits_of_side({0x10: ("FADD", "", 0.3), 0x20: ("FADD", "", 0.2)}, {0x30: ""})
    comparison = compared_sides(trace, monkeypatch, side, side)
    assert [change.latest.place for change in comparison.changes] == ["0x0010 FADD", "0x0020 FADD"]
    assert {change.difference for change in comparison.changes} == {0}


def test_kernel_without_source_lines_names_offset_and_instruction(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copy the trace without source lines, as of a closed library: at 80 columns nothing is empty, no number is cut."""
    monkeypatch.setenv("COLUMNS", "80")
    directory = shutil.copytree(trace, tmp_path / "trace")
    (sites,) = directory.glob("kernel/*/sites.json")
    document = json.loads(sites.read_text(), object_hook=lambda part: {k: v for k, v in part.items() if k != "source"})
    sites.write_text(json.dumps(document))
    (sites.parent / "pruned.bin").unlink()
    assert front.main(["show", "stalls", str(directory)]) == 0
    _, titles, _, first, *_ = capsys.readouterr().out.splitlines()
    assert titles.split()[:4] == ["warp", "life", "offset", "SASS"]
    assert "source" not in titles
    assert first.split()[:5] == ["11%", "0x05e0", "STS", "global", "memory"]
    assert first.endswith(" 558  48  2 094")


def test_groups_of_sites_are_one_finding_of_a_kernel(groups: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The longest wait is in the second group; report, summary and lines have it once, from both launches."""
    assert front.main(["report", str(groups)]) == 0
    report = capsys.readouterr().out
    assert report.count("longest wait: ") <= 2  # where to look first, and among the kernel's own findings
    assert "waits 11%" not in report
    assert front.main(["report", str(groups), "--page", "summary"]) == 0
    summary = capsys.readouterr().out
    assert summary.count("longest wait") == summary.count("\n   measured waits ") == 1
    assert "found in launches 0, 1 by -p stall_sites" in summary
    assert "of warp life at 16 SASS instructions" in " ".join(summary.split())
    assert front.main(["show", "lines", f"{groups}:0"]) == 0
    lines = capsys.readouterr().out
    assert lines.count("launches 0, 1 of #0, -p stall_sites") == 1
    assert sum(line.startswith(" 0x") for line in lines.splitlines()) == 16


def test_remainder_is_not_known_if_launches_add_up_to_more_than_all() -> None:
    """Two groups wait 60 % of the life of their own launch each."""
    sites = [StallSite(at, "FADD", None, 602, 1, None, life=1000) for at in (0x10, 0x20)]
    groups = [Stalls((site,), 1000, 1000, total=2, offsets=(0x10, 0x20)) for site in sites]
    assert groups[0].remaining == pytest.approx(1 - 0.648)
    joined = Stalls.join(groups)
    assert joined.share == pytest.approx(2 * 0.648)
    assert joined.remaining is None
    assert measured_text(groups[0], "").endswith("; remaining 35%: issue, fixed-latency dependencies")
    text = measured_text(joined, "")
    assert text.startswith("130% of warp life at 2 SASS instructions. This exceeds 100%: the waits are measured in")
    assert text.endswith("The time without waits is therefore unknown")


@pytest.mark.parametrize(("measured", "uncertainty"), [(0, 48), (10, 38), (40, 40), (700, 48)])
def test_uncertainty_is_the_largest_error_of_the_hidden_cycles(measured: int, uncertainty: int) -> None:
    """Between 0 and 48 cycles are hidden, and as many as were measured are added, at most 48."""
    site = StallSite(0x10, "FADD", None, 4 * (measured + 2), 4, None, life=10_000)
    assert site.uncertainty == uncertainty
    assert site.share_uncertainty == pytest.approx(4 * uncertainty / 10_000)


def test_again_offers_stalls_for_a_latency_bound_kernel(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = SimpleNamespace(verdict=SimpleNamespace(limit="latency"), cause="")
    monkeypatch.setattr(rerun, "kernel_limiter", lambda _: unknown)
    monkeypatch.setattr(rerun, "recorded_run", lambda *_: (RunInfo.__new__(RunInfo), ()))
    monkeypatch.setattr(rerun, "_other_kernel_choices", lambda *_: ())
    kernel = open_trace(trace).kernels[0]
    assert rerun.offer(trace, kernel).choices[0].value == "-p stalls"
    unknown.cause = "known"
    assert rerun.offer(trace, kernel).choices[0].value != "-p stalls"


def test_latency_names_its_cause(trace: Path) -> None:
    cause = latency_cause(open_trace(trace).kernels[0])
    assert cause == "tfa.py:6 (STS) waits 11% of warp life for LDG tfa.py:6 (global memory, 558 cycles each)"


def test_latency_without_a_cause_names_the_set_that_measures_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = started_trace(tmp_path / "trace")
    writer.kernel(0, "attn_fwd")
    writer.exit()
    monkeypatch.setattr(limiter, "limiter_verdict", lambda *_: SimpleNamespace(limit="latency", unknown=()))
    limits = limiter.limiter_from_results([], [open_trace(writer.directory).kernels[0]], 3.0e12, NcuBytes(dram=1e9))
    assert limits is not None
    assert limits.command.startswith("tui-probe run -p stalls -- ")


def test_kernel_without_sass_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main(["check", "stall_sites", str(DATA / "tiled_matmul.sm_80.ptx")]) == 1
    text = capsys.readouterr().out
    assert "code      needs-sass" in text
    assert "Compile for this GPU" in text


def test_page_names_the_tensor_of_awaited_loads(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first parameter of each launch is an address in ``q``; those of ``k`` and ``v`` are not in the trace."""
    monkeypatch.setenv("COLUMNS", "160")
    directory = shutil.copytree(trace, tmp_path / "trace")
    (directory / "tensor.trace").write_text("[call]  torch.float32  torch.Size([32, 32])  4096  139637976727552  q\n")
    assert "STS tfa.py:6 global memory of q LDG tfa.py:6" in shown_text(directory, capsys)
    assert front.main(["show", "stalls", str(directory), "--format", "json"]) == 0
    sites = json.loads(capsys.readouterr().out)["data"]["sites"]
    assert {site["offset"]: site["tensors"] for site in sites if site["tensors"]} == {0x5E0: ["q"]}
    (probe,) = read_sites(open_trace(directory).kernels[0].folder) or ()
    parameters = {site.wait.kind: site.wait.parameters for site in probe.sites if site.wait}
    assert (parameters["global"], parameters["async"], parameters["barrier"]) == ((0,), (2,), ())


DEPTH_ONE = """
.visible .entry k(.param .u64 x, .param .u32 n) {
    .reg .b64 %d<4>; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .pred %p<2>;
    .shared .align 16 .b8 stage[4096];
    ld.param.u64 %d1, [x];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, stage;
    mov.u32 %r3, 0;
    mov.f32 %f1, 0f00000000;
LOOP:
    cp.async.ca.shared.global [%r2], [%d1], 16;
    cp.async.commit_group;
    cp.async.wait_group 0;
    bar.sync 0;
    ld.shared.f32 %f2, [%r2];
    add.f32 %f1, %f1, %f2;
    add.s64 %d1, %d1, 4096;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p1, %r3, %r1;
    @%p1 bra LOOP;
    st.global.f32 [%d1], %f1;
    ret; }
"""


def test_copies_of_the_same_iteration_are_a_pipeline_of_depth_one(
    trace: Path, assembled: Callable[[str, int | str], Cubin], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The loop of attention starts its copies one iteration ahead."""
    assert "pipeline of depth 1" not in shown_text(trace, capsys)
    writer = started_trace(tmp_path / "trace")
    folder = writer.kernel(0, "k")
    result = group_result(folder, "stall_sites", 8192, assembled(DEPTH_ONE, 90), "k")
    writer.save(0, writer.launch(0, GRID, BLOCK), result)
    writer.exit()
    text = shown_text(writer.directory, capsys)
    _, note, following = text.rpartition(
        "the loop starts this copy in the iteration that waits for it (pipeline of depth 1)"
    )
    assert note
    assert following.startswith(" measured waits: ")


MANY = 20
"""Copies per stage, more than ``sites.json`` names."""
TWO_STAGES = f"""
.visible .entry k(.param .u64 x, .param .u32 n) {{
    .reg .b64 %d<4>; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .pred %p<2>;
    .shared .align 16 .b8 stage[8192];
    ld.param.u64 %d1, [x];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, stage;
    mov.u32 %r3, 0;
    mov.f32 %f1, 0f00000000;
    {"".join(f"cp.async.ca.shared.global [%r2+{16 * at}], [%d1+{16 * at}], 16;" for at in range(MANY))}
    cp.async.commit_group;
LOOP:
    .pragma "nounroll";
    add.s64 %d1, %d1, 4096;
    add.u32 %r3, %r3, 1;
    and.b32 %r4, %r3, 1;
    mad.lo.u32 %r5, %r4, 4096, %r2;
    {"".join(f"cp.async.ca.shared.global [%r5+{16 * at}], [%d1+{16 * at}], 16;" for at in range(MANY))}
    cp.async.commit_group;
    cp.async.wait_group 1;
    bar.sync 0;
    xor.b32 %r6, %r5, 4096;
    ld.shared.f32 %f2, [%r6];
    add.f32 %f1, %f1, %f2;
    bar.sync 0;
    setp.lt.u32 %p1, %r3, %r1;
    @%p1 bra LOOP;
    st.global.f32 [%d1], %f1;
    ret; }}
"""


def test_many_copies_of_the_previous_iteration_are_no_pipeline_of_depth_one(
    assembled: Callable[[str, int | str], Cubin], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = started_trace(tmp_path / "trace")
    folder = writer.kernel(0, "k")
    result = group_result(folder, "stall_sites", 8192, assembled(TWO_STAGES, 90), "k")
    writer.save(0, writer.launch(0, GRID, BLOCK), result)
    writer.exit()
    assert "pipeline of depth 1" not in shown_text(writer.directory, capsys)
    (probe,) = read_sites(folder) or ()
    (wait,) = (site.wait for site in probe.sites if site.wait and site.wait.kind == "async")
    assert {(producer.opcode, producer.previous) for producer in wait.producers} == {("LDGSTS", True)}
    assert not wait.one_iteration


def test_copy_of_an_unrolled_body_may_be_of_an_iteration_before() -> None:
    """Only one of the waits of the line is for copies in front of the loop's back edge."""
    first, second = (SiteWait("async", 1, 2, (), one_iteration=value) for value in (True, False))
    alone, other = (StallSite(0x10, "DEPBAR", None, 602, 1, wait, life=1000) for wait in (first, second))
    assert LineWaits((alone,)).copies_of_this_iteration
    assert not LineWaits((alone, other)).copies_of_this_iteration


def test_wgmma_of_several_lines_but_that_of_the_wait_has_all_lines() -> None:
    def site(line: int, kind: str) -> StallSite:
        lines = 37, 37, 31, 36, 35
        producers = tuple(
            SiteInstruction(Offset(16 * at), "HGMMA", "tensor", source=SourceLine("a.py", own))
            for at, own in enumerate(lines)
        )
        return StallSite(0x90, "WARPGROUP", SourceLine("a.py", line), 602, 1, SiteWait(kind, 1, 2, producers))

    assert site(32, "wgmma").producer == "HGMMA a.py:37, a.py:31, a.py:36, …"
    assert site(37, "wgmma").producer == "HGMMA a.py:37"
    assert site(32, "global").producer == "HGMMA a.py:37"


def test_page_names_the_set_and_needs_a_gpu() -> None:
    """A run on the simulated GPU cannot fill the page."""
    trace = open_trace(SIMULATED / "block_sched")
    source = ViewSource(trace, trace.kernels[0])
    assert kind_of("stalls").missing_reason(source) == (
        "the kernel was probed with block_sched: run with -p stalls on a GPU; the simulated GPU has no SASS to measure"
    )
    tab = kernel_tab(kind_of("stalls"), "s", source, is_empty=True)
    assert (tab.option, tab.missing_reason) == ("", "nothing recorded: run with -p stalls on a GPU")
    other = open_trace(H200 / "demo")
    source = ViewSource(other, other.kernels[0])
    assert str(kind_of("stalls").missing_reason(source)).endswith(": run with -p stalls")
    assert kernel_tab(kind_of("stalls"), "s", source, is_empty=True).option == "-p stalls"
