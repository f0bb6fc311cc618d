"""Phases of warps on the simulated GPU: a producer that is late by a known number of rounds, and its consumers."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bench.assembling import assembler
from tests.engine.kernels import DATA, entry, probed
from tests.golden import golden
from tests.probes.running import result_of
from tests.ptx.images import fatbin_of
from tests.trace.make import TraceWriter
from tests.ui.conftest import on_stage
from tui_probe.cli.main import main
from tui_probe.draw import units
from tui_probe.draw.spans import plain, width
from tui_probe.engine.function_sites import source_names
from tui_probe.engine.insertion import build_probed_ptx
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.site_file import site_file
from tui_probe.errors import ProbeFileError, TraceError, UsageError
from tui_probe.probe_files.choices import choose_probes
from tui_probe.probe_files.loading import load_probe
from tui_probe.probe_files.option_probes import phases_in, phases_probe
from tui_probe.probe_model.positions import SourceRange
from tui_probe.probes.phases import _advice, findings
from tui_probe.probes.phases.analysis import NOT_RECORDED, LaunchPhases, Spans, _join_spans, analyse
from tui_probe.probes.phases.code_phases import moved_instructions
from tui_probe.probes.phases.kinds import Phase, roles_of
from tui_probe.probes.phases.lanes import (
    MIN_CELLS,
    dominant_phases,
    lanes,
    shown_warps,
    tensor_lane,
    trace_events,
)
from tui_probe.probes.phases.sentences import Sentences, wait_text
from tui_probe.probes.phases.tables import PhaseRow, ProductGaps, TensorRates, multiply_adds, overlap_of, rows_of
from tui_probe.probes.phases.view import PhasesView
from tui_probe.probes.phases.waits import Wait, waits_of
from tui_probe.ptx.parser import parse
from tui_probe.ptx.phases import phase_starts
from tui_probe.simgpu.executor.model import COSTS
from tui_probe.trace.sites import read_sites
from tui_probe.trace.source_lines import SourceLine
from tui_probe.ui import Appearance
from tui_probe.ui.screens.kernel import KernelScreen
from tui_probe.ui.session import Session

if TYPE_CHECKING:
    from tui_probe.probe_model.probe import Probe

PHASE = Phase("A", "mma", "loop", 0, 1, 0, (1,), (), is_signal=False, instructions=1, moved_count=0, is_named=False)
WAITS = (DATA / "waits.sm_90a.ptx").read_text()
PROBE = load_probe("phases")
CONSUMERS, THREADS, ROUND = 4, 160, 3 * COSTS["integer"]


def recorded(
    folder: Path,
    text: str,
    name: str,
    *arguments: object,
    block: int,
    grid: tuple[int, ...] = (1,),
    shared: int = 0,
    probe: Probe = PROBE,
) -> LaunchPhases:
    """Run a kernel with the probe, and analyse the result with the sites as the engine writes them."""
    kernel = Kernel.of(parse(text), name)
    (folder / "sites.json").write_text(site_file(probe.name, kernel, build_probed_ptx(kernel, probe).notes, b""))
    result = result_of(folder, probe, text, *arguments, grid=grid, block=(block,), shared=shared, name=name)
    return analyse(result, folder)


def staged(folder: Path, tiles: int, delay: int, cap: int = 2048) -> LaunchPhases:
    """One block of a producer and four consumers; the producer is late by ``delay`` rounds at each tile."""
    folder.mkdir()
    probe = replace(PROBE, maps=(PROBE.maps[0], replace(PROBE.maps[1], cap=cap)))
    values, out = np.arange(128 * tiles, dtype=np.float32), np.zeros(128, np.float32)
    return recorded(folder, WAITS, "staged", out, values, np.int32(tiles), np.int32(delay), block=THREADS, probe=probe)


def row_of(found: LaunchPhases, role: str, name: str) -> PhaseRow:
    return next(row for row in rows_of(found) if row.role == role and row.phase.name == name)


def longest_wait(found: LaunchPhases, role: str) -> Wait:
    return next(wait for wait in waits_of(found) if wait.role == role)


def test_late_producer_is_named_with_its_delay(tmp_path: Path) -> None:
    """Each round of delay lengthens the producer's iterations, and the waits of its consumers, by its cycles."""
    fast, slow = (staged(tmp_path / str(delay), 9, delay) for delay in (30, 50))
    assert slow.roles == ("consumer", "producer")
    assert slow.warps.role.tolist() == [0] * CONSUMERS + [1]
    grown = row_of(slow, "producer", "loop: integer").median - row_of(fast, "producer", "loop: integer").median
    assert grown == 20 * ROUND
    wait = longest_wait(slow, "consumer")
    assert (wait.partner, wait.by_order) == ("producer", True)
    assert wait.signal is not None
    assert wait.signal.name == "loop: bulk copy"
    assert wait.late_cycles - longest_wait(fast, "consumer").late_cycles == CONSUMERS * 9 * 20 * ROUND
    assert wait.late_cycles > 2 * wait.in_flight_cycles
    freed = longest_wait(slow, "producer")
    assert (freed.partner, freed.by_order) == ("consumer", True)
    assert (wait.arrivals, freed.arrivals) == (1, CONSUMERS)


@pytest.mark.parametrize(
    ("works", "names"),
    [
        (({"bulk copy", "compute"}, {"mbarrier wait", "mma"}), ("producer", "consumer")),
        (({"bulk copy", "mbarrier wait"}, {"mbarrier wait", "mma"}, {"mbarrier wait", "global store"}),
         ("producer", "consumer", "epilogue")),
        (({"tile request", "mbarrier wait"}, {"async copy"}, {"mma", "global store"}),
         ("scheduler", "producer", "consumer")),
        (({"mma", "bulk copy"}, {"shared store"}), ("consumer", "store")),
        (({"global load", "compute"}, {"barrier wait"}), ("consumer", "other")),
    ],
)  # fmt: skip
def test_roles_are_named_by_the_work_of_all(works: tuple[set[str], ...], names: tuple[str, ...]) -> None:
    phases = [replace(PHASE, work=work, loop=loop) for loop, own in enumerate(works) for work in sorted(own)]
    warps = np.array([phase.loop for phase in phases], np.int64)
    _, named, _ = roles_of(warps, np.arange(len(phases)), phases, len(works))
    assert named == names


def test_spans_cover_the_life_of_each_warp(tmp_path: Path) -> None:
    """Lanes 1 to 31 of the producer leave first, and record nothing."""
    analysis = staged(tmp_path / "t", 9, 20)
    for warp in range(CONSUMERS + 1):
        spans = analysis.spans.select(analysis.spans.warp == warp)
        assert spans.start[0] == analysis.warps.start[warp]
        assert spans.end[-1] == analysis.warps.end[warp]
        np.testing.assert_array_equal(spans.start[1:], spans.end[:-1])
    producer = analysis.iteration[(analysis.spans.warp == CONSUMERS) & (analysis.iteration > 0)]
    assert producer.max() == 9
    assert np.bincount(producer)[1:].tolist() == [3] * 9, "wait, delay, copy"
    assert analysis.starts_kept == analysis.starts_seen


def test_pipeline_with_too_few_stages_is_named(tmp_path: Path) -> None:
    """Copies take longer than both stages cover: consumers wait for them, the producer for a free stage."""
    launch = staged(tmp_path / "t", 40, 5)
    wait = longest_wait(launch, "consumer")
    assert wait.late_share is not None
    assert wait.late_share < 0.1
    assert wait.stages_full == 2
    assert wait_text(wait).endswith("; all 2 stages are in use")
    assert longest_wait(launch, "producer").stages_full == 0
    assert longest_wait(staged(tmp_path / "late", 40, 50), "consumer").stages_full == 0


def test_finding_is_of_the_consumers_where_both_wait(tmp_path: Path) -> None:
    """The producer waits longer, for a free stage, but the time of the copies limits both."""
    launch = staged(tmp_path / "t", 40, 0)
    assert longest_wait(launch, "producer").share > longest_wait(launch, "consumer").share
    finding = next(iter(findings(SimpleNamespace(), launch)))
    assert finding.words.startswith("consumer waits ")
    assert finding.advice == "all 2 stages are in use: add stages to the pipeline, or copy larger boxes"


def test_products_are_those_of_the_matrices(tmp_path: Path) -> None:
    """M·N·K multiply-adds, all in the loop's phase of products."""
    m, n, k, tile = 64, 32, 96, 32
    left, right = (np.ones(shape, np.float16) for shape in ((m, k), (k, n)))
    out, scratch = np.zeros((m, n), np.float16), np.zeros(1, np.int32)
    sizes = [np.int32(size) for size in (k, k, n, n)]
    text = (DATA / "triton_matmul.sm_80.ptx").read_text()
    grid = (m // tile, n // tile)
    launch = recorded(
        tmp_path, text, "matmul", left, right, out, *sizes, scratch, scratch, block=128, grid=grid, shared=32768
    )
    assert multiply_adds(launch) == m * n * k
    rows = [row for row in rows_of(launch) if row.multiply_adds]
    assert [row.phase.work for row in rows] == ["mma"]
    assert rows[0].per_clock() == pytest.approx(m * n * k * 4 / rows[0].cycles)


def test_tensor_lane_has_the_products_of_the_block(tmp_path: Path) -> None:
    """All multiply-adds of a block, in cells in which some warp is in the phase of products."""
    m, n, k, tile = 64, 32, 96, 32
    left, right = (np.ones(shape, np.float16) for shape in ((m, k), (k, n)))
    out, scratch = np.zeros((m, n), np.float16), np.zeros(1, np.int32)
    sizes = [np.int32(size) for size in (k, k, n, n)]
    text = (DATA / "triton_matmul.sm_80.ptx").read_text()
    arguments = (left, right, out, *sizes, scratch, scratch)
    launch = recorded(tmp_path, text, "matmul", *arguments, block=128, grid=(m // tile, 1), shared=32768)
    rates = TensorRates.for_block(launch, 1)
    assert rates is not None
    assert rates.issued[-1] == pytest.approx(tile * n * k)
    cells, window = 50, (0, launch.block_cycles[1])
    drawn = plain(tensor_lane(rates, 6, window, cells, None))[8:]
    assert max(drawn) == "9"
    warps = np.flatnonzero(launch.warps.block == 1)
    spans = launch.spans.select(np.isin(launch.spans.warp, warps))
    products = np.array([phase.work == "mma" for phase in launch.phases])[spans.phase]
    edges = window[1] * np.arange(cells + 1) / cells
    for cell, digit in enumerate(drawn):
        inside = (spans.start < edges[cell + 1]) & (spans.end > edges[cell]) & products
        assert (digit != " ") == inside.any()
    assert TensorRates.for_block(staged(tmp_path / "t", 3, 5), 0) is None


def test_gaps_of_products_are_the_cycles_in_which_no_warp_issues_any(tmp_path: Path) -> None:
    """Their time is that of the phases in which the warps are, which issue products at other times."""
    left, right, out, scratch = (np.ones(shape, np.float16) for shape in ((32, 96), (96, 32), (32, 32), (2,)))
    sizes = [np.int32(size) for size in (96, 96, 32, 32)]
    text = (DATA / "triton_matmul.sm_80.ptx").read_text()
    arguments = (left, right, out, *sizes, scratch, scratch)
    launch = recorded(tmp_path, text, "matmul", *arguments, block=128, grid=(1, 1), shared=32768)
    gaps = ProductGaps.for_block(launch, 0)
    assert gaps is not None
    outside, in_phase = np.ones(launch.block_cycles[0], bool), Counter[int]()
    spans = launch.spans
    columns = [column.tolist() for column in (spans.start, spans.end, spans.phase)]
    for start, end, phase in zip(*columns, strict=True):
        outside[start:end] &= launch.phases[phase].work != "mma"
    for start, end, phase in zip(*columns, strict=True):
        in_phase[phase] += int(outside[start:end].sum())
    assert (gaps.cycles, gaps.recorded) == (outside.sum(), len(outside))
    (role,) = gaps.by_role
    assert gaps.by_role[role] == pytest.approx({phase: cycles / 4 for phase, cycles in in_phase.items() if cycles})
    assert ProductGaps.for_block(staged(tmp_path / "t", 3, 5), 0) is None


UNEVEN = entry(
    """.reg .pred %p<3>;
    .reg .b32 %r<5>;
    mov.u32 %r1, %tid.x;
    shr.u32 %r1, %r1, 5;
    mov.u32 %r4, 0;
    $loop:
    mov.u32 %r2, 0;
    setp.ne.u32 %p1, %r1, 2;
    @%p1 bra $join;
    $late:
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p2, %r2, 50;
    @%p2 bra $late;
    $join:
    bar.sync 0;
    st.shared.u32 [tile], %r2;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, 6;
    @%p1 bra $loop;
    ret;""",
    module=".shared .align 4 .b8 tile[4];",
)


def test_last_warp_at_a_barrier_is_named(tmp_path: Path) -> None:
    """Warp 2 of four goes fifty rounds before each barrier."""
    analysis = recorded(tmp_path, UNEVEN, "kernel", block=128)
    waits = waits_of(analysis)
    assert "role" not in phase_headings(analysis)
    assert (waits[0].role, waits[0].phase.work, waits[0].count) == ("all warps", "barrier wait", 4 * 6)
    assert (waits[0].last_warp, waits[0].last_share) == (2, 1)
    assert waits[0].late_cycles >= 3 * 6 * 45 * ROUND
    assert "all warps wait " in wait_text(waits[0])
    assert "of this wait, warp 2 has not arrived. Of its own time, warp 2 spends " in wait_text(waits[0])


@pytest.mark.parametrize(
    ("blocked", "end"),
    [
        (None, "or more warps"),
        (0.0, "More stages do not help: the producer hardly ever waits for a free stage"),
        (0.3, "or use more stages: the producer waits 30% of its time for a free stage"),
    ],
)
def test_advice_on_stages_follows_from_the_measured_stages(tmp_path: Path, blocked: float | None, end: str) -> None:
    """Of a late producer: more stages help only if it waits for one."""
    wait = longest_wait(staged(tmp_path / "t", 3, 200), "consumer")
    assert wait.partner_blocked is not None
    assert wait.partner_blocked < 0.01
    assert _advice(replace(wait, partner_blocked=blocked)).endswith(end)


def test_file_that_all_rows_share_is_named_once(tmp_path: Path) -> None:
    """Two files are named in each row, as is one where the first line has no room for it."""
    launch = recorded(tmp_path, UNEVEN, "kernel", block=128)
    kernel = SimpleNamespace(mode="ptx", slowdown=None, folder=None)
    of = SimpleNamespace(
        kernel_name="kernel", kernel=kernel, simulated=True, launch_label="launch 0 of #0", products_per_clock=None
    )

    def texts(files: list[str], width: int = 132) -> list[str]:
        sites = tuple(
            replace(own, instruction=replace(own.instruction, source=SourceLine(files[place % len(files)], 7 + place)))
            for place, own in enumerate(launch.sites)
        )
        return list(map(plain, PhasesView(of, replace(launch, sites=sites)).lines(width)))  # type: ignore[arg-type]

    lines = texts(["/src/uneven.cu"])
    assert lines[0].endswith("cycles; uneven.cu")
    assert any(line.rstrip().endswith("times  line") for line in lines)
    assert not [line for line in lines if re.match(r" [A-Z]  .*uneven\.cu", line)]
    assert not texts(["/src/uneven.cu", "/src/other.cu"])[0].endswith(".cu")
    assert any(re.match(r" [A-Z]  .*uneven\.cu:", line) for line in texts(["/src/uneven.cu"], 56))


SLOW_WARP = UNEVEN.replace("@%p1 bra $join;", "selp.u32 %r3, 5, 50, %p1;").replace("%r2, 50;", "%r2, %r3;")


def test_slow_warp_has_a_row_of_its_own(tmp_path: Path) -> None:
    """Warp 2 of four goes fifty rounds of a loop before each of six barriers, the others five."""
    launch = recorded(tmp_path, SLOW_WARP, "kernel", block=128)
    (row,) = [row for row in rows_of(launch) if row.parts]
    assert [part.part for part in row.parts] == ["warp 2", "other warps"]
    slow, others = row.parts
    assert (slow.iterations, others.iterations) == (6, 18)
    assert slow.median > 4 * others.median
    assert slow.cycles + others.cycles == pytest.approx(row.cycles, abs=1)
    wait = waits_of(launch)[0]
    assert wait.last_warp_slowdown == pytest.approx(slow.median / others.median)
    assert wait_text(wait).endswith(
        f", where it takes {wait.last_warp_slowdown:.1f} times as long as the other warps (median)"
    )
    kernel = SimpleNamespace(mode="ptx", slowdown=None, folder=None)
    of = SimpleNamespace(
        kernel_name="kernel", kernel=kernel, simulated=True, launch_label="launch 0 of #0", products_per_clock=None
    )
    view = PhasesView(of, launch)  # type: ignore[arg-type]
    lines = list(map(plain, view.lines(132)))
    place = next(number for number, line in enumerate(lines) if line.strip().startswith("warp 2 "))
    assert lines[place + 1].strip().startswith("other warps ")
    assert view.ptx_line(place, 132) == row.site.instruction.line
    records = [record["slow_warps"] for record in view.record()["phases"] if record["slow_warps"]]
    assert [[part["part"] for part in parts] for parts in records] == [["warp 2", "other warps"]]


def test_trace_events_have_flows_from_the_last_warp_at_a_barrier(tmp_path: Path) -> None:
    """Of each of six barriers to the three warps that wait for warp 2, at the time at which it comes."""
    launch = recorded(tmp_path, UNEVEN, "kernel", block=128)
    events = list(trace_events(launch, waits_of(launch), "kernel", None))
    begins = [event for event in events if event["ph"] == "s"]
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert [event["tid"] for event in begins] == [2] * 6 * 3
    assert sorted(event["tid"] for event in ends.values()) == sorted([0, 1, 3] * 6)
    waits = {event["ts"] for event in events if event["ph"] == "X" and event["cat"] == "wait" and event["tid"] == 2}
    assert {event["ts"] for event in begins} == waits
    assert all(event["ts"] <= ends[event["id"]]["ts"] for event in begins)


def test_barrier_without_a_late_warp_does_not_hide_the_late_one(tmp_path: Path) -> None:
    """A second barrier right behind the first, at which all arrive together."""
    work = "".join(f"fma.rn.f32 %f{number}, %f{number}, %f{number}, 0f3F800000;" for number in range(8))
    twice = UNEVEN.replace("add.u32 %r4, %r4, 1;", f"{work} bar.sync 0; add.u32 %r4, %r4, 1;")
    analysis = recorded(tmp_path, twice.replace(".reg .pred", ".reg .f32 %f<8>; .reg .pred", 1), "kernel", block=128)
    (wait,) = (wait for wait in waits_of(analysis) if wait.last_warp is not None)
    assert wait.count == 4 * 12
    assert (wait.last_warp, wait.last_share) == (2, pytest.approx(1, abs=0.05))


def test_late_block_at_a_barrier_of_a_cluster_is_unknown(tmp_path: Path) -> None:
    text = UNEVEN.replace("bar.sync 0;", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;")
    analysis = recorded(tmp_path, text, "kernel", block=128)
    (wait,) = waits_of(analysis)
    assert (wait.phase.work, wait.late_share, wait.last_warp) == ("cluster barrier wait", None, None)
    sentences = list(
        Sentences(
            SimpleNamespace(kernel=SimpleNamespace(slowdown=None), simulated=True), analysis, 0, None
        ).other_notes()
    )
    assert sentences[0] == wait_text(wait)
    assert sentences[0].endswith("The late block is unknown because SMs have different clocks")


def test_named_barriers_are_phases_of_their_own(tmp_path: Path) -> None:
    """Warp 2 is late at barrier 1, then warp 3 at barrier 2."""
    first = UNEVEN[UNEVEN.index("mov.u32 %r2, 0;") : UNEVEN.index("st.shared")]
    second = first.replace("%r1, 2;", "%r1, 3;").replace("$late", "$later").replace("$join", "$joined")
    text = UNEVEN.replace(first, first.replace("sync 0", "sync 1, 128") + second.replace("sync 0", "sync 2, 128"))
    waits = waits_of(recorded(tmp_path, text, "kernel", block=128))
    late = {wait.phase.name: (wait.phase.barriers, wait.count, wait.last_warp) for wait in waits}
    assert late == {
        "loop: named barrier 1 wait": (("barrier 1",), 4 * 6, 2),
        "loop: named barrier 2 wait": (("barrier 2",), 4 * 6, 3),
    }
    assert all("barrier 1 wait (" not in wait_text(wait) for wait in waits), "the number is in the name"


def test_lanes_show_the_warp_that_differs(tmp_path: Path) -> None:
    analysis = recorded(tmp_path, UNEVEN, "kernel", block=128)
    assert [int(analysis.warps.warp[warp]) for warp in shown_warps(analysis, analysis.median_block)] == [0, 2]


def test_overlap_adds_up(tmp_path: Path) -> None:
    overlap = overlap_of(staged(tmp_path / "t", 9, 20))
    assert overlap is not None
    assert 0 <= overlap.compute_and_load < min(overlap.compute, overlap.load)
    assert overlap.compute + overlap.load - overlap.compute_and_load + overlap.neither <= 1


def phase_headings(analysis: LaunchPhases) -> str:
    """The headings of the table of these phases."""
    kernel = SimpleNamespace(mode="ptx", slowdown=None, folder=None)
    of = SimpleNamespace(
        kernel_name="kernel", kernel=kernel, simulated=True, launch_label="launch 0 of #0", products_per_clock=None
    )
    lines = map(plain, PhasesView(of, analysis).lines(132))  # type: ignore[arg-type]
    return next(line for line in lines if "median cycles" in line)


def test_full_ring_keeps_the_first_phases(tmp_path: Path) -> None:
    """The time behind the last record that was kept is of no phase."""
    analysis = staged(tmp_path / "t", 140, 0, cap=256)
    assert analysis.starts_kept < analysis.starts_seen
    assert analysis.spans.phase.max() >= 0
    for warp in range(CONSUMERS + 1):
        spans = analysis.spans.select(analysis.spans.warp == warp)
        assert (spans.phase[:-1] != NOT_RECORDED).all()
    assert (analysis.spans.phase == NOT_RECORDED).any()
    assert "?" in "".join(map(plain, lanes(analysis, 0, 80)))
    assert "role" in phase_headings(analysis)
    kernel = SimpleNamespace(mode="ptx", slowdown=None, folder=None)
    name = "_ZN7cutlass13device_kernel" + "INS_4gemm6kernel13GemmUniversal" * 4
    of = SimpleNamespace(
        kernel_name=name, kernel=kernel, simulated=True, launch_label="launch 2 of #0", products_per_clock=None
    )
    view = PhasesView(of, analysis)  # type: ignore[arg-type]
    (note,) = (note for note in view.notes() if note.startswith("kept: "))
    share = analysis.unrecorded / analysis.life
    assert f"; {share:.0%} of warp life has no record (drawn as ?), so the shares of all phases are too low" in note
    for columns in (60, 80, 132):
        head = plain(view.lines(columns)[0])
        assert len(head) <= columns
        about = f", launch 2 of #0: block 0, {units.count(analysis.block_cycles[0])} cycles"
        assert head.removesuffix("; ?: not recorded").endswith(about)
        assert ("not recorded" in head) == (columns > 60), "the legend leaves before the kernel's name"
        assert "_ZN7" in head
    of.kernel_name = "_ZN7cutlass13device_kernelIiEEvT_"
    head = plain(PhasesView(of, analysis).lines(132)[0])  # type: ignore[arg-type]
    assert head.startswith(" void cutlass::device_kernel<int>(int), launch 2")


NAMED = entry(
    """.reg .pred %p<2>;
    .reg .b32 %r<4>;
    .loc 1 1 0
    mov.u32 %r1, 0;
    mov.u32 %r2, 1;
    mov.u32 %r3, 1;
    mov.u32 %r2, 2;
    $loop:
    .loc 1 3 0
    add.u32 %r2, %r2, 1;
    add.u32 %r2, %r2, 2;
    add.u32 %r2, %r2, 3;
    add.u32 %r2, %r2, 4;
    .loc 1 4 0
    add.u32 %r3, %r2, 1;
    add.u32 %r3, %r3, 2;
    add.u32 %r3, %r3, 3;
    add.u32 %r3, %r3, 4;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 5;
    @%p1 bra $loop;
    .loc 1 6 0
    mov.u32 %r2, 3;
    mov.u32 %r2, 3;
    mov.u32 %r2, 3;
    mov.u32 %r2, 3;
    ret;""",
    module='.file 1 "/src/attn.py"',
)


def test_named_phases_nest_and_take_their_cycles(tmp_path: Path) -> None:
    phases = (("body", SourceRange("attn.py", 3, 4)), ("inner", SourceRange("attn.py", 4, 4)))
    analysis = recorded(tmp_path, NAMED, "kernel", block=32, probe=replace(PROBE, phases=phases))
    names = [analysis.phases[phase].name for phase in analysis.spans.phase.tolist()]
    assert names == ["prologue", *["body", "body/inner"] * 5, "prologue"]
    inner, body = (analysis.spans.cycles[np.array(names) == name] for name in ("body/inner", "body"))
    more = 3 - 1  # a count, a comparison and a branch; the addition that counts both records is in front of the second
    assert inner[0] - body[0] == more * COSTS["integer"]
    assert analysis.phases[1].place == "attn.py:3"
    assert overlap_of(analysis) is None, "names do not tell what phases do"


MEETING = entry(
    """.reg .b32 %r<3>;
    .loc 1 3 0
"""
    + "add.u32 %r1, %r1, 1;\n" * 40
    + """.loc 1 4 0
    bar.sync 0;
    .loc 1 5 0
"""
    + "add.u32 %r1, %r1, 1;\n" * 40
    + "ret;",
    module='.file 1 "/src/attn.py"',
)


def test_named_wait_of_one_instruction_is_a_phase(tmp_path: Path) -> None:
    """Fewer than four instructions of a name join their neighbors, but the time of a wait is what it was named for."""
    phases = tuple((name, SourceRange("attn.py", line, line)) for name, line in (("load", 3), ("meet", 4), ("work", 5)))
    analysis = recorded(tmp_path, MEETING, "kernel", block=64, probe=replace(PROBE, phases=phases))
    names = [analysis.phases[phase].name for phase in analysis.spans.select(analysis.spans.warp == 0).phase.tolist()]
    assert names == ["load", "meet", "work"]


def test_records_of_a_block_beyond_the_cap_are_dropped(tmp_path: Path) -> None:
    """A block that begins with room for one record saves two; the second one is counted, not read."""
    text = NAMED.replace("setp.lt.u32 %p1, %r1, 5;", "setp.lt.u32 %p1, %r1, 1400;")
    phases = (("body", SourceRange("attn.py", 3, 4)), ("inner", SourceRange("attn.py", 4, 4)))
    analysis = recorded(tmp_path, text, "kernel", block=32, probe=replace(PROBE, phases=phases))
    assert analysis.kept_text == "2 048 of 2 802 phase starts, the first of each warp"
    assert analysis.spans.phase[1:-1].tolist() == [1, 2] * 1023
    assert (analysis.spans.cycles > 0).all()


def test_last_records_are_kept_where_the_probe_says_so(tmp_path: Path) -> None:
    """The phases of the end are those of the same launch with all records; the time before them is of none."""
    text = NAMED.replace("setp.lt.u32 %p1, %r1, 5;", "setp.lt.u32 %p1, %r1, 60;")
    phases = (("body", SourceRange("attn.py", 3, 4)), ("inner", SourceRange("attn.py", 4, 4)))
    launches = []
    for cap, latest in ((32, True), (2048, False)):
        maps = (PROBE.maps[0], replace(PROBE.maps[1], cap=cap, latest=latest))
        folder = tmp_path / str(cap)
        folder.mkdir()
        probe = replace(PROBE, maps=maps, phases=phases)
        launches.append(recorded(folder, text, "kernel", block=32, probe=probe))
    last, complete = launches
    assert (last.starts_kept, last.starts_seen, complete.starts_kept) == (32, 122, 122)
    assert (last.kept_text, complete.kept_text) == ("32 of 122 phase starts, the last of each warp", "")
    assert last.spans.phase.tolist() == complete.spans.phase[-32:].tolist()
    assert np.ptp(last.spans.cycles[1:-1] - complete.spans.cycles[-31:-1]) <= 2 * COSTS["integer"]


@pytest.mark.parametrize(
    ("inside", "starts", "ends"),
    [(True, [0, 1, 3, 4, 5], [1, 3, 4, 5, 6]), (False, [0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6])],
)
def test_record_inside_of_a_phase_begins_nothing(
    inside: bool, starts: list[int], ends: list[int], tmp_path: Path
) -> None:
    """Warp 0 is in phases 0, 1, 1, 0, 1, warp 1 in phase 1. Of phase 1, only a second record in a row is inside."""
    site = staged(tmp_path / "t", 9, 20).sites[0]
    assert site.phase is not None
    sites = [site, site, replace(site, phase=replace(site.phase, is_reentrant=inside))]
    places = np.array([0, 1, 2, 0, 2, 1], np.int64)
    spans = Spans(np.array([0, 0, 0, 0, 0, 1]), np.arange(6), np.arange(1, 7), np.zeros(6, np.int64), places)
    joined = _join_spans(spans, [0, 1, 1], sites)
    assert (joined.start.tolist(), joined.end.tolist()) == (starts, ends)


def test_result_without_sites_is_refused(tmp_path: Path) -> None:
    result = result_of(tmp_path, PROBE, NAMED, block=(32,), name="kernel")
    with pytest.raises(TraceError, match=r"sites\.json"):
        analyse(result, tmp_path)


@cache
def shown(folder: Path) -> LaunchPhases:
    return staged(folder / "shown", 9, 50)


@settings(max_examples=30, deadline=None)
@given(cells=st.integers(1, 300), begin=st.integers(-50, 20_000), length=st.integers(1, 30_000))
def test_lanes_fit_every_width(tmp_path_factory: pytest.TempPathFactory, cells: int, begin: int, length: int) -> None:
    analysis = shown(tmp_path_factory.getbasetemp())
    for line in lanes(analysis, 0, cells):
        assert width(plain(line)) <= max(cells, MIN_CELLS + 3)
    for warp in (0, CONSUMERS):
        drawn = dominant_phases(analysis, warp, (begin, begin + length), cells)
        assert len(drawn) == cells
        assert drawn.max() < len(analysis.phases)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("phases")
    analysis = staged(folder / "t", 9, 50)
    assert len(analysis.phases) > 8
    writer = TraceWriter(folder / "trace")
    writer.start(device="Simulated GPU", sms=8)
    kernel = writer.kernel(0, "staged")
    (kernel / "sites.json").write_text((folder / "t/sites.json").read_text())
    own = Kernel.of(parse(WAITS), "staged")
    probed = build_probed_ptx(own, PROBE)
    (kernel / "kernel.info").write_text(probed.info)
    (kernel / "pruned.ptx").write_text(own.pruned)
    launch = writer.launch(0, (1, 1, 1), (THREADS, 1, 1))
    writer.save(0, launch, (folder / "t/1.000000.bin").read_bytes())
    writer.exit()
    return writer.directory


def test_page_at_80_columns(trace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["show", "phases", str(trace)]) == 0
    golden("phases.txt", capsys.readouterr().out, width=80)


def test_record_has_roles_phases_and_waits(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "phases", str(trace), "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)["data"]
    assert [role["role"] for role in record["roles"]] == ["consumer", "producer"]
    wait = next(own for own in record["waits"] if own["role"] == "consumer")
    assert (wait["partner"], wait["signal"], wait["matched_by"]) == ("producer", "loop: bulk copy", "order")
    assert wait["arrivals_per_phase"] == 1
    letters = {phase["letter"] for phase in record["phases"]}
    assert {letter for lane in record["lanes"] for letter in lane["letter"]} <= letters
    assert sum(phase["share"] for phase in record["phases"] if phase["role"] == "consumer") == pytest.approx(
        1, abs=0.02
    )


def test_finding_names_the_late_producer(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(trace)]) == 0
    report = " ".join(capsys.readouterr().out.split())
    assert "role wait: consumer waits" in report
    assert "the producer is late: give the producer less work per stage" in report


def test_phase_option_writes_a_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    name = phases_probe(["load=./kernels/attn+1.py:96-88", "soft-max=attn.py:101"])
    assert name == "phases=load=kernels/attn+1.py:88-96+soft-max=attn.py:101"
    assert phases_in(name) == {"load": "kernels/attn+1.py:88-96", "soft-max": "attn.py:101"}
    probe = load_probe(name)
    assert probe.callback == "phases"
    assert [(phase, str(lines)) for phase, lines in probe.phases] == list(phases_in(name).items())
    assert load_probe(phases_probe(["load=b.py:1"])).path != probe.path


@pytest.mark.parametrize("texts", [[], ["load=attn.py:88-96"]])
@pytest.mark.parametrize(("records", "latest", "every"), [("last", True, 0), ("every:8", False, 8)])
def test_phase_records_option_chooses_records(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    texts: list[str],
    records: str,
    latest: bool,
    every: int,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    name = phases_probe(texts, records)
    assert name == "+".join([f"phases={records}", *texts])
    assert phases_in(name) == dict(text.split("=") for text in texts)
    probe = load_probe(name)
    assert [own_map.latest for own_map in probe.maps] == [False, latest]
    assert probe.every == every
    assert (probe.callback, len(probe.phases)) == ("phases", len(texts))
    first = [phases_probe(texts)] if texts else ["phases"]
    assert [own_map.latest for own_map in load_probe(*first).maps] == [False, False]
    command = ["run", "--phase-records", records, *(part for text in texts for part in ("--phase", text))]
    chosen: list[list[str]] = []
    monkeypatch.setattr("tui_probe.cli.run.start", lambda arguments: chosen.append(arguments.probe) or 0)
    assert main([*command, "-p", "phases", "-p", "block_sched", "--", "true"]) == 0
    assert main(["run", "--phase-records", "first", "-p", "phases", "--", "true"]) == 0
    assert main([*command, "-p", "phases:1/16", "--", "true"]) == 0
    assert chosen == [["block_sched", name], ["phases"], [f"{name}:1/16"]]
    assert choose_probes(chosen[-1])[0].sample == "1/16"
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["attn.py:1-2"], "write NAME=FILE:FIRST-LAST"),
        (["a b=attn.py:1-2"], "write NAME=FILE:FIRST-LAST"),
        (["load=attn.py"], "write FILE:FIRST-LAST"),
        (["load=a.py:1", "load=a.py:2"], "two phases have the same name"),
        ([f"p{number}=a.py:{number + 1}" for number in range(33)], "at most 32"),
    ],
)
def test_wrong_phase_options_are_refused(texts: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="--phase"):
        phases_probe(texts)
    assert main(["run", *(part for text in texts for part in ("--phase", text)), "--", "true"]) == 2
    assert words in capsys.readouterr().err


def test_phases_table_needs_lines(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(f'{PROBE.source}\n[phases]\nload = "ld.global"\n')
    with pytest.raises(ProbeFileError, match=r"load must be lines of source"):
        load_probe(str(path))


def test_trace_events_have_spans_and_flows(trace: Path, tmp_path: Path) -> None:
    """Each wait for the producer has an arrow from its signal, which ends no later than the wait."""
    out, picture = tmp_path / "events.json", tmp_path / "phases.svg"
    assert main(["show", "phases", str(trace), "--perfetto", str(out), "--svg", str(picture)]) == 0
    assert "<svg" in picture.read_text()
    events = json.loads(out.read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert {event["tid"] for event in spans} == set(range(CONSUMERS + 1))
    assert {event["cat"] for event in spans} >= {"wait", "load", "compute"}
    begins = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert begins.keys() == ends.keys()
    assert sum(event["tid"] == CONSUMERS for event in begins.values()) == 9 * CONSUMERS
    assert all(begins[number]["ts"] <= ends[number]["ts"] for number in begins)


def test_sample_records_its_blocks_only(tmp_path: Path) -> None:
    """Blocks outside of the sample have no room for records, rather than a branch around each."""
    kernel = Kernel.of(parse(NAMED), "kernel")
    (tmp_path / "sites.json").write_text(site_file("phases", kernel, build_probed_ptx(kernel, PROBE).notes, b""))
    result = result_of(tmp_path, PROBE, NAMED, grid=(7,), block=(48,), name="kernel", sample=range(1, 7, 2))
    analysis = analyse(result, tmp_path)
    assert analysis.warps.block.tolist() == [1, 1, 3, 3, 5, 5]
    assert analysis.starts_kept == analysis.starts_seen == 6
    assert analysis.named_share() == 1


@pytest.mark.parametrize("words", ["cap = 1", "size = 12\ncap = 8", 'level = "thread"\ncap = 8', "cap = 0"])
def test_leader_needs_several_small_records_of_warps(tmp_path: Path, words: str) -> None:
    level = "" if "level" in words else 'level = "warp"\n'
    path = tmp_path / "own.toml"
    path.write_text(
        f'[map.m]\n{level}{words}\nleader = true\n[map.m.regs]\nclock = "u32"\n'
        '[probe.p]\nposition = "loop"\nbefore = "SAVE [ m ] {%clock};"\n'
    )
    with pytest.raises(
        ProbeFileError, match="needs a map with level = 'warp' and several records of 4, 8 or 16 bytes per warp"
    ):
        load_probe(str(path))


async def test_screen_shows_page_at_all_sizes(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trace.parent)
    async with on_stage(Session(traces=(Path(trace.name),)), (80, 24), Appearance(ascii_only=False)) as stage:
        await stage.press("enter", "0")
        await stage.press("f")
        await stage.settle()
        kernel = stage.app.screen
        assert isinstance(kernel, KernelScreen), stage.text
        assert kernel.current == "phases"
        page = "\n".join(stage.text.split("\n")[:-1])  # without the footer: few goldens list keys
        golden("phases-screen.txt", page, width=80)
        for columns, rows, shown in ((60, 15, "remaining"), (61, 30, "remaining"), (200, 50, "consumer w0")):
            await stage.resize(columns, rows)
            assert max(map(width, stage.text.split("\n"))) <= columns
            assert shown in stage.text, "the answer next to the table, and the lanes where there is room"
        await stage.press("enter")
        await stage.settle()
        assert "mbarrier.try_wait" in stage.text


def test_instructions_moved_by_ptxas_are_counted(tmp_path: Path) -> None:
    """An attention kernel, with the phases of lines of its source: the table of lines tells whose an instruction is."""
    kernel = Kernel.of(parse((DATA / "triton_attention.sm_90a.ptx").read_text()), "flash_attention")
    named = (("scores", 31, 32), ("softmax", 33, 35), ("values", 36, 38))
    phases = tuple((name, SourceRange("attention.py", first, last)) for name, first, last in named)
    probe = replace(PROBE, phases=phases)
    starts = phase_starts(kernel.entry, source_names(kernel, phases))
    works = {kernel.line_of(start.head): start.work for start in starts}
    source, binary = tmp_path / "probed.ptx", tmp_path / "probed.bin"
    moved = []
    text = probed(kernel.module.source, kernel.entry.name, probe)
    for own in (text, re.sub(r"\t\.loc[^\n]*", "", text)):
        source.write_text(own)
        assembler().assemble(source, binary, "sm_90a", kernel.entry.name, lines=True)
        moved.append(moved_instructions(binary.read_bytes(), kernel.entry.name, probe, works))
    counts, without_lines = moved
    assert without_lines is None
    assert counts is not None
    assert {"scores", "softmax", "values"} <= counts.keys()
    assert 0 < counts["scores"] < 40
    assert counts["softmax"] < 10


def test_phases_by_line_of_a_program_without_ptx(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``nvcc -lineinfo`` for one architecture leaves PTX without lines in the cubin, and its line table."""
    assembler().assemble(
        DATA / "triton_attention.sm_90a.ptx", tmp_path / "own.cubin", "sm_90a", "flash_attention", lines=True
    )
    program = tmp_path / "own.fatbin"
    program.write_bytes(fatbin_of(cubin=(90, (tmp_path / "own.cubin").read_bytes())))
    named = "phases=scores=attention.py:31-32+softmax=attention.py:33-35+values=attention.py:36-38"
    assert main(["check", named, str(program), "--arch", "sm_90a", "--out", str(tmp_path / "out")]) == 0
    assert "1 probed in PTX" in capsys.readouterr().out
    (folder,) = (tmp_path / "out").iterdir()
    (probe,) = read_sites(folder) or ()
    assert {"scores", "softmax", "values"} <= {site.phase.work for site in probe.sites if site.phase}
    assert {site.instruction.source.file for site in probe.sites if site.instruction.source} == {"attention.py"}


def test_records_of_straight_code_are_counted_once() -> None:
    """Labels of debug information divide the loop of an attention kernel; its records share an address all the same."""
    kernel = Kernel.of(parse((DATA / "triton_attention.sm_90a.ptx").read_text()), "flash_attention")
    text = probed(kernel.module.source, kernel.entry.name, PROBE)
    loop = text.partition("$L__BB0_2:")[2].partition("bra \t$L__BB0_2;")[0]
    counts = re.findall(
        r"add\.u32 (%\w+), \1, (\d+);", "\n".join(line for line in loop.splitlines() if "phases" in line)
    )
    assert [int(count) for _, count in counts] == [loop.count("%clock;")] == [9]
    assert re.findall(r"st\.global\.cs\.v2\.b32 \[%\w+\+?(\d*)\]", loop) == ["", *map(str, range(8, 72, 8))]


@pytest.mark.parametrize("words", ["cap = 8", "cap = 12\nleader = true"])
def test_latest_needs_a_leader_and_a_power_of_two(tmp_path: Path, words: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        f'[map.m]\nlevel = "warp"\n{words}\nlatest = true\n[map.m.regs]\nclock = "u32"\n'
        '[probe.p]\nposition = "loop"\nbefore = "SAVE [ m ] {%clock};"\n'
    )
    with pytest.raises(ProbeFileError, match="needs leader = true, and a cap that is a power of two"):
        load_probe(str(path))


@pytest.mark.parametrize(("lines", "noted"), [((3, 4), False), ((3, 3), True), ((1, 1), True)])
def test_page_says_where_time_is_in_no_named_phase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: tuple[int, int], noted: bool
) -> None:
    """Some lines of a loop, or all, are in no --phase."""
    monkeypatch.setattr("tui_probe.probes.phases.view.moved_in_trace", lambda *_: None)
    text = NAMED.replace("setp.lt.u32 %p1, %r1, 5;", "setp.lt.u32 %p1, %r1, 500;")
    probe = replace(PROBE, phases=(("part", SourceRange("attn.py", *lines)),))
    kernel = SimpleNamespace(mode="ptx", slowdown=None)
    of = SimpleNamespace(kernel_name="kernel", kernel=kernel, simulated=True)
    view = PhasesView(of, recorded(tmp_path, text, "kernel", block=32, probe=probe))  # type: ignore[arg-type]
    notes = [note for note in view.notes() if note.startswith("in no named phase: ")]
    assert len(notes) == noted
    for note in notes:
        assert f" (attn.py:{lines[0] + 2 if lines == (1, 1) else 4}). " in note
        assert "Name this line in a --phase option, or omit --phase" in note
