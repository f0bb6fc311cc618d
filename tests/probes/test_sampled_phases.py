"""Phases with records of every k-th iteration: shares, numbers of iterations, matches and the page."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.engine.kernels import entry
from tests.probes.test_phases import CONSUMERS, PROBE, THREADS, WAITS, longest_wait, recorded, row_of, staged
from tui_probe.cli.main import main
from tui_probe.draw.spans import plain
from tui_probe.errors import ProbeFileError
from tui_probe.probe_files.loading import load_probe
from tui_probe.probes.phases.lanes import lanes, trace_events
from tui_probe.probes.phases.tables import multiply_adds, overlap_of, rows_of
from tui_probe.probes.phases.view import PhasesView
from tui_probe.probes.phases.waits import waits_of
from tui_probe.simgpu.executor.model import COSTS

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.probes.phases.analysis import LaunchPhases


def sampled(folder: Path, tiles: int, delay: int, every: int) -> LaunchPhases:
    """``staged``, with records of every k-th iteration."""
    folder.mkdir()
    values, out = np.arange(128 * tiles, dtype=np.float32), np.zeros(128, np.float32)
    probe = replace(PROBE, maps=(PROBE.maps[0], replace(PROBE.maps[1], every=every)))
    return recorded(folder, WAITS, "staged", out, values, np.int32(tiles), np.int32(delay), block=THREADS, probe=probe)


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> LaunchPhases:
    """A launch with all records, which tests compare with one with a part of them."""
    return staged(tmp_path_factory.mktemp("staged") / "all", 200, 300)


@pytest.mark.parametrize("every", [2, 16])
def test_sampled_iterations_have_the_shares_of_all(tmp_path: Path, complete: LaunchPhases, every: int) -> None:
    """A part of the iterations is enough: shares and medians are those of a launch with all records."""
    part = sampled(tmp_path / "part", 200, 300, every)
    assert (part.sampling_period, part.roles, part.kept_text, part.unrecorded) == (every, complete.roles, "", 0)
    assert part.named_share() == pytest.approx(1)
    iterations = len(range(0, 200, every))
    of_consumers, of_producer = (CONSUMERS * (2 + 1), 3 + 1)  # one more begins the time without records
    assert part.starts_kept == complete.starts_kept - 200 * (CONSUMERS * 2 + 3) + iterations * (
        of_consumers + of_producer
    )
    assert part.life < 1.02 * complete.life
    for row in rows_of(complete):
        estimated = row_of(part, row.role, row.phase.name)
        assert estimated.share == pytest.approx(row.share, abs=0.02)
        if row.phase.stage == "loop":
            assert (row.iterations / estimated.iterations) == pytest.approx(every, rel=0.05)
            assert estimated.median == pytest.approx(row.median, abs=8 * COSTS["integer"])
    first = part.spans.warp == 0
    recorded_numbers = np.unique(part.iteration[first & ~part.is_skipped])
    assert recorded_numbers.tolist() == [0, *range(1, 201, every)]
    assert np.unique(part.iteration[first & part.is_skipped]).tolist() == [*range(2, 201, every)]
    assert (overlap_of(part), multiply_adds(part)) == (None, None)


def test_waits_match_signals_of_the_same_iteration(tmp_path: Path, complete: LaunchPhases) -> None:
    """The barrier names the role of a signal of another iteration, but nothing tells when this signaled."""
    part = sampled(tmp_path / "part", 200, 300, 8)
    waits, freed = (longest_wait(part, role) for role in ("consumer", "producer"))
    assert (waits.partner, waits.by_order, waits.signal_count) == ("producer", True, 25)
    assert waits.late_share == pytest.approx(longest_wait(complete, "consumer").late_share, abs=0.02)
    assert (freed.partner, freed.late_share, freed.stages_in_use) == ("consumer", None, None)
    arrows = [event for event in trace_events(part, waits_of(part), "kernel", None) if event["ph"] == "s"]
    assert sum(event["tid"] == CONSUMERS for event in arrows) == 25 * CONSUMERS


def test_page_of_sampled_iterations(tmp_path: Path) -> None:
    """The main loop is shown by one recorded iteration, the whole block by what was recorded of each cell."""
    part = sampled(tmp_path / "part", 200, 30, 8)
    kernel = SimpleNamespace(mode="ptx", slowdown=None, folder=None)
    of = SimpleNamespace(
        kernel_name="kernel", kernel=kernel, simulated=True, launch_label="launch 2", products_per_clock=None
    )
    view = PhasesView(of, part)  # type: ignore[arg-type]
    text = "\n".join(map(plain, view.lines(120)))
    assert "iteration 97 of the main loop" in text
    window = view.record()["main_iterations"]
    of_consumer = (part.spans.warp == 0) & (part.iteration == 97)
    assert (window["first"], window["last"]) == (97, 97)
    assert window["start"] < part.spans.start[of_consumer].min()
    assert window["end"] == part.spans.end[(part.iteration == 97) & ~part.is_skipped].max()
    share = part.spans.cycles[part.is_skipped].sum() / part.life
    assert f"recorded: every 8th iteration of innermost loops; {share:.0%} of warp life is in the other" in text
    assert (view.record()["every"], view.record()["overlap"]) == (8, None)
    narrow, wide = ([plain(line) for line in lanes(part, 0, cells)][1] for cells in (40, 240))
    assert ("?" in narrow, "?" in wide, "G" in narrow, "G" in wide) == (False, True, True, True)


TWICE = entry(
    """.reg .pred %p1;
    .reg .b32 %r<9>;
    .reg .f32 %f1;
    mov.u32 %r1, 0;
OUTER:
    mov.u32 %r2, 0;
INNER:
"""
    + "add.f32 %f1, %f1, %f1;\n" * 96
    + """add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, 10;
    @%p1 bra INNER;
"""
    + "ex2.approx.f32 %f1, %f1;\n" * 8
    + """add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 3;
    @%p1 bra OUTER;
    ret;"""
)


def test_iterations_count_from_each_entry_of_a_loop(tmp_path: Path) -> None:
    """Of ten iterations, the first, the fifth and the ninth are recorded, each time that the outer loop enters it."""
    probe = replace(PROBE, maps=(PROBE.maps[0], replace(PROBE.maps[1], every=4)))
    part = recorded(tmp_path, TWICE, "kernel", block=32, probe=probe)
    inner = np.array([bool(site.phase and site.phase.sampling_period) for site in part.sites])[part.spans.site]
    numbers = part.iteration[inner]
    assert numbers.tolist() == [own + 10 * entered for entered in range(3) for own in (1, 2, 5, 6, 9, 10)]
    assert part.is_skipped[inner].tolist() == [False, True] * 9
    computing = next(row for row in rows_of(part) if row.phase.work == "compute")
    assert computing.cycles == part.spans.cycles[inner].sum()
    assert computing.iterations == 9


@pytest.mark.parametrize("words", ["cap = 8", "cap = 8\nleader = true\nlatest = true", "cap = 9\nleader = true"])
def test_every_needs_a_leader_and_a_power_of_two(tmp_path: Path, words: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        f'[map.m]\nlevel = "warp"\n{words}\nevery = {6 if "9" in words else 8}\n[map.m.regs]\nclock = "u32"\n'
        '[probe.p]\nposition = "phase"\nbefore = "SAVE [ m ] {%clock};"\n'
    )
    with pytest.raises(
        ProbeFileError, match=r"must be a power of two; needs leader = true; cannot be combined with 'latest'"
    ):
        load_probe(str(path))


@pytest.mark.parametrize("text", ["every:1", "every:6", "every:2048", "every", "second"])
def test_wrong_phase_records_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--phase-records", text, "--", "true"]) == 2
    assert f"--phase-records {text}: write first, last or every:K, where K is a power of two" in capsys.readouterr().err
