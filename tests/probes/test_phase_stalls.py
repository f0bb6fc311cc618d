"""Stalls that another probe measured, by phase: of Triton's attention on an NVIDIA H200 (driver 580, CUDA 13.0)."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.bench.assembling import assembler
from tests.engine.kernels import DATA
from tests.probes.test_phases import PROBE, staged
from tests.recorded import H200, unpacked
from tui_probe.binaries.cubin import Cubin
from tui_probe.draw.spans import plain
from tui_probe.engine.grafting.grafts import Grafter
from tui_probe.engine.insertion import build_probed_ptx
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.site_file import site_file
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.probe import MeasuredWait
from tui_probe.probes.phases.code_phases import phases_of_lines
from tui_probe.probes.phases.kinds import phases_of
from tui_probe.probes.phases.stalls import (
    PhaseStalls,
    likely_phase,
    phase_at_line,
    phases_by_place,
    stalls_of,
)
from tui_probe.probes.phases.view import PhasesView
from tui_probe.ptx.parser import parse
from tui_probe.trace.follow import open_trace
from tui_probe.trace.sites import parse_sites
from tui_probe.trace.source_lines import SourceLine, SourceLines

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.model import KernelFacts
    from tui_probe.trace.sites import Site

LONGEST = {
    0x1260: "loop: wgmma wait",
    0x3090: "loop: barrier wait",
    0xF60: "loop: copy wait",
    0x790: "prologue: shared store",
    0x48E0: "epilogue: global store",
}
"""Phases of measured waits by offset, read off the SASS: WARPGROUP.DEPBAR, BAR, DEPBAR, STS, STG."""


@pytest.fixture(scope="module")
def attention(tmp_path_factory: pytest.TempPathFactory) -> KernelFacts:
    trace = open_trace(unpacked(H200 / "stalls_attention", tmp_path_factory.mktemp("phase_stalls")))
    return trace.kernels[1]


def under(kernel: KernelFacts, probe: str) -> KernelFacts:
    return next(own for own in kernel.by_probe() if own.probe == probe)


def sites_in(text: str) -> tuple[Site, ...]:
    return tuple(site for probe in parse_sites(text.encode()) for site in probe.sites if site.phase)


def ptx_sites(kernel: KernelFacts) -> tuple[Site, ...]:
    path = kernel.file("pruned.ptx")
    assert path is not None
    parsed = Kernel.of(parse(path.read_text()), kernel.name)
    return sites_in(site_file("phases", parsed, build_probed_ptx(parsed, PROBE).notes, b""))


def sass_sites(kernel: KernelFacts) -> tuple[Site, ...]:
    path = kernel.file("pruned.bin")
    assert path is not None
    cubin = Cubin.read(path.read_bytes())
    return sites_in(Grafter(PROBE, assembler(), samples_blocks=False).graft(cubin, kernel.name).sites)


@pytest.mark.parametrize("mode", ["ptx", "sass"])
def test_waits_are_in_the_phase_of_their_code(mode: str, attention: KernelFacts) -> None:
    probed = under(attention, "block_sched" if mode == "ptx" else "stall_sites")
    sites = ptx_sites(probed) if mode == "ptx" else sass_sites(probed)
    phases, _ = phases_of(sites)
    of, launch = SimpleNamespace(kernel=probed), SimpleNamespace(phases=phases, sites=sites)
    source = ViewSource(attention.trace, probed)  # type: ignore[arg-type]
    stalls = stalls_of(source, of, launch)  # type: ignore[arg-type]
    assert stalls is not None
    assert stalls.problem == ""
    assert stalls.launches == "launches 31, 33, 34, 35 of #1"
    names = {wait.offset: phases[number].name for number, waits in stalls.by_phase.items() for wait in waits}
    assert {at: names.get(at) for at in LONGEST} == LONGEST
    wgmma = next(number for number, phase in enumerate(phases) if phase.name == "loop: wgmma wait")
    assert max(stalls.shares, key=lambda number: stalls.shares[number]) == wgmma
    assert stalls.shares[wgmma] == pytest.approx(0.1295, abs=1e-3)
    assert stalls.elsewhere_share < 0.01


ARMS = """.version 8.7
.target sm_90
.address_size 64
.visible .entry arms(.param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    ld.param.u32 %r1, [n];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra other;
    add.u32 %r2, %r1, 1;
    bra both;
other:
    add.u32 %r2, %r1, 2;
both:
    add.u32 %r3, %r2, 3;
    ret;
}
"""


@pytest.mark.parametrize(("other", "behind"), [(1, None), (0, 0)])
def test_code_behind_several_phases_is_in_none(other: int, behind: int | None) -> None:
    line = {text.strip(): number for number, text in enumerate(ARMS.splitlines(), 1)}
    first, second, last = (line[f"add.u32 {text};"] for text in ("%r2, %r1, 1", "%r2, %r1, 2", "%r3, %r2, 3"))
    phases = phases_of_lines(ARMS, {first: 0, second: other})
    assert [phases.get(place) for place in (first - 1, first, second, last)] == [None, 0, other, behind]


def test_line_in_several_phases_is_decided_by_what_is_awaited(attention: KernelFacts) -> None:
    phases, _ = phases_of(ptx_sites(under(attention, "block_sched")))
    product = [number for number, phase in enumerate(phases) if phase.name in ("loop: mma", "loop: wgmma wait")]
    source = SourceLine("/home/a/attention.py", 32)
    by_place = phases_by_place(dict(zip((10, 11), product, strict=True)), SourceLines({10: source, 11: source}))
    assert by_place == {"attention.py:32": tuple(product)}
    names = {
        kind: None if (own := likely_phase(product, phases, kind)) is None else phases[own].name
        for kind in ("wgmma", "shared memory", "mbarrier")
    }
    assert names == {"wgmma": "loop: wgmma wait", "shared memory": "loop: mma", "mbarrier": None}
    assert likely_phase(product[:1], phases, "mbarrier") == product[0]
    assert likely_phase((), phases, "wgmma") is None


def test_code_in_front_of_a_wait_leads_to_the_wait() -> None:
    """ptxas may name the sum that is the address of an mbarrier as the line of its first test."""
    kernel = Kernel.of(parse((DATA / "kv_pipeline.sm_90a.ptx").read_text()), "static_barriers")
    phases, _ = phases_of(sites_in(site_file("phases", kernel, build_probed_ptx(kernel, PROBE).notes, b"")))
    (wait,) = (number for number, phase in enumerate(phases) if phase.name == "loop: full_v[2] wait")
    lines = phases_of_lines(kernel.pruned, {line: own for own, phase in enumerate(phases) for line in phase.lines})
    (start,) = phases[wait].lines
    front = max(line for line in lines if line < start)
    before = lines[front]
    assert phases[before].work != "mbarrier wait"
    by_kind = {kind: phase_at_line(front, lines, phases, kind) for kind in ("mbarrier", "wgmma", "math")}
    assert by_kind == {"mbarrier": wait, "wgmma": before, "math": before}
    assert phase_at_line(start, lines, phases, "mbarrier") == wait
    named = [replace(phase, is_named=True) for phase in phases]
    assert phase_at_line(front, lines, named, "mbarrier") == before, "the user's phase has no kind of wait"


def stalls_in(number: int) -> PhaseStalls:
    waits = [
        MeasuredWait(0x80 + 16 * place, "SYNCS", f"gemm.cu:{line}", "mbarrier", "UTMALDG gemm.cu:4", share)
        for place, (line, share) in enumerate(((8, 0.25), (9, 0.1), (8, 0.05), (10, 0.05), (11, 0.01)))
    ]
    return PhaseStalls({number: waits}, [MeasuredWait(0x200, "BAR", "", "barrier", "", 0.04)], "launches 4, 5 of #0")


def view_with(stalls: PhaseStalls | None, folder: Path) -> PhasesView:
    kernel = SimpleNamespace(mode="ptx", slowdown=None, folder=None)
    of: Any = SimpleNamespace(
        kernel_name="kernel",
        kernel=kernel,
        simulated=True,
        launch_label="launch 0 of #0",
        products_per_clock=None,
        clock_khz=None,
    )
    return PhasesView(of, staged(folder, 9, 30), stalls)


def test_page_names_the_stalls_inside_a_phase(tmp_path: Path) -> None:
    plain_view = view_with(None, tmp_path / "without")
    number = next(n for n, phase in enumerate(plain_view.launch.phases) if phase.name == "loop: full[2] wait")
    view = view_with(stalls_in(number), tmp_path / "with")
    notes = [note for note in view.notes() if note.startswith("stalls")]
    first = "30% mbarrier at SYNCS gemm.cu:8 (for UTMALDG gemm.cu:4)"
    assert notes[0].startswith(f"stalls in “loop: full[2] wait” (consumer): 46% of warp life: {first}; 10% mbarrier")
    assert notes[0].endswith("; …")
    assert notes[1].startswith("stalls whose phase is unknown: 4% of warp life: 4% barrier at BAR 0x0200.")
    assert notes[2] == "stalls: measured in launches 4, 5 of #0; 100% is the warp life of all roles together"
    record = view.record()
    (row,) = (row for row in record["phases"] if row["stalls"])
    assert (row["phase"], [stall["share"] for stall in row["stalls"]]) == (
        "loop: full[2] wait",
        [0.25, 0.1, 0.05, 0.05, 0.01],
    )
    assert record["stalls"]["launches"] == "launches 4, 5 of #0"
    shown = " ".join(plain(line).strip() for line in view.lines(80))
    assert first in shown
    assert {row["stalls"] for row in plain_view.record()["phases"]} == {None}
    assert not [note for note in plain_view.notes() if note.startswith("stalls")]


def test_damaged_results_of_stalls_leave_the_phases(tmp_path: Path) -> None:
    view = view_with(PhaseStalls({}, (), "", "result/1.bin is damaged"), tmp_path / "t")
    notes = [note for note in view.notes() if note.startswith("stalls")]
    assert notes == ["stalls in phases are unknown: result/1.bin is damaged"]
    assert view.record()["stalls"] is None
