"""Phases of a pipeline with an mbarrier for K and one for V: the late copy is named by its barrier."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.engine.kernels import DATA
from tests.probes.test_phases import CONSUMERS, PROBE, ROUND, THREADS, longest_wait, recorded
from tui_probe.draw.spans import plain
from tui_probe.probes.phases import findings
from tui_probe.probes.phases.analysis import LaunchPhases
from tui_probe.probes.phases.sentences import wait_text
from tui_probe.probes.phases.view import PhasesView
from tui_probe.probes.phases.waits import Wait, waits_of
from tui_probe.ui.views.document_window import DocumentSearch, LineWindow, matching_lines

if TYPE_CHECKING:
    from tui_probe.probe_model.probe import Probe

PIPELINE = (DATA / "kv_pipeline.sm_90a.ptx").read_text()
SHARED_BYTES = 2112
TILES = 12
BARRIERS = {
    "static_barriers": ("full_k[2]", "empty_k[2]", "full_v[2]", "empty_v[2]"),
    "dynamic_barriers": tuple(f"memory+{2048 + 16 * number}[2]" for number in range(4)),
}
KEYS, VALUES = 1, 2
"""Numbers of the parameters that the copies are from."""


@cache
def pipeline(folder: Path, name: str, late_k: int, late_v: int, tiles: int = TILES) -> LaunchPhases:
    folder = folder / f"{name}-{tiles}-{late_k}-{late_v}"
    folder.mkdir()
    return run_pipeline(folder, name, late_k, late_v, tiles, PROBE)


def run_pipeline(folder: Path, name: str, late_k: int, late_v: int, tiles: int, probe: Probe) -> LaunchPhases:
    out, keys = np.zeros(THREADS - 31, np.float32), np.zeros(THREADS * tiles, np.float32)
    arguments = (out, keys, keys.copy(), *(np.int32(number) for number in (tiles, late_k, late_v)))
    return recorded(folder, PIPELINE, name, *arguments, block=THREADS, shared=SHARED_BYTES, probe=probe)


def waits_by_barrier(launch: LaunchPhases) -> dict[str, Wait]:
    waits = [wait for wait in waits_of(launch) if wait.phase.work == "mbarrier wait"]
    by_name = {wait.phase.barriers[0]: wait for wait in waits}
    assert len(by_name) == len(waits)
    return by_name


@pytest.mark.parametrize("name", BARRIERS)
@pytest.mark.parametrize("is_v_late", [False, True])
def test_late_copy_is_named_by_its_barrier(
    tmp_path_factory: pytest.TempPathFactory, name: str, is_v_late: bool
) -> None:
    """Work before one of two copies lengthens the wait for this copy alone."""
    late = (2, 40) if is_v_late else (40, 2)
    launch = pipeline(tmp_path_factory.getbasetemp(), name, *late)
    full_k, empty_k, full_v, empty_v = BARRIERS[name]
    late_name, prompt_name = (full_v, full_k) if is_v_late else (full_k, full_v)
    waits = waits_by_barrier(launch)
    assert set(waits) == set(BARRIERS[name])
    assert all(wait.by_order for wait in waits.values())
    wait, other = waits[late_name], waits[prompt_name]
    assert wait is longest_wait(launch, "consumer")
    assert wait.late_cycles > 5 * other.late_cycles
    assert wait.share > 5 * other.share
    assert (wait.late_share or 0) > 0.8
    assert waits[full_k].phase.parameters == (KEYS,)
    assert waits[full_v].phase.parameters == (VALUES,)
    for free in (empty_k, empty_v):
        assert (waits[free].role, waits[free].partner, waits[free].phase.parameters) == ("producer", "consumer", ())


def test_delay_of_v_is_in_the_wait_for_v(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each round of work more before the copies of V is waited for at the barrier of V, and nowhere else."""
    folder = tmp_path_factory.getbasetemp()
    fast, slow = (waits_by_barrier(pipeline(folder, "static_barriers", 2, late)) for late in (40, 60))
    rounds = ROUND + 4 * 4
    assert slow["full_v[2]"].late_cycles - fast["full_v[2]"].late_cycles == CONSUMERS * TILES * 20 * rounds
    assert slow["full_k[2]"].late_cycles == fast["full_k[2]"].late_cycles


def test_arrivals_are_counted_by_barrier(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The producer arrives once for each tile, each of the consumers, too."""
    waits = waits_by_barrier(pipeline(tmp_path_factory.getbasetemp(), "static_barriers", 2, 40))
    counts = {name: (wait.count, wait.signal_count, wait.arrivals) for name, wait in waits.items()}
    assert counts == {
        "full_k[2]": (CONSUMERS * TILES, TILES, 1),
        "full_v[2]": (CONSUMERS * TILES, TILES, 1),
        "empty_k[2]": (TILES, CONSUMERS * TILES, CONSUMERS),
        "empty_v[2]": (TILES, CONSUMERS * TILES, CONSUMERS),
    }


def test_stages_in_use_tell_who_limits_the_pipeline(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A late producer leaves all stages empty; an early one fills both before the consumers come."""
    folder = tmp_path_factory.getbasetemp()
    late, early = (waits_by_barrier(pipeline(folder, "static_barriers", rounds, rounds)) for rounds in (60, 0))
    assert late["full_k[2]"].stages_in_use == 0
    assert early["empty_k[2]"].stages_in_use is not None
    assert 1 < early["empty_k[2]"].stages_in_use <= 2
    assert late["empty_k[2]"].stages_in_use is not None
    assert late["empty_k[2]"].stages_in_use < 0.5


def test_finding_says_what_fills_the_barrier(tmp_path_factory: pytest.TempPathFactory) -> None:
    launch = pipeline(tmp_path_factory.getbasetemp(), "static_barriers", 2, 40)
    names = {0: "out", KEYS: "K", VALUES: "V"}
    phases = tuple(replace(own, tensors=tuple(names[number] for number in own.parameters)) for own in launch.phases)
    named = replace(launch, phases=phases)
    finding = next(iter(findings(SimpleNamespace(), named)))
    assert " of its time in “loop: full_v[2] wait” (mbarrier for bulk copy of V). During " in finding.words
    assert finding.advice.startswith("the producer is late")
    assert finding.brief.startswith("full_v[2] wait: ")
    assert "(mbarrier). " in wait_text(longest_wait(launch, "consumer")), "names of the memory are unknown"


def view_of(launch: LaunchPhases) -> PhasesView:
    kernel = SimpleNamespace(mode="ptx", slowdown=None, folder=None)
    of = SimpleNamespace(
        kernel_name="kernel", kernel=kernel, simulated=True, launch_label="launch 0", products_per_clock=None
    )
    return PhasesView(of, launch)  # type: ignore[arg-type]


@pytest.mark.parametrize("columns", [60, 80, 132])
def test_page_has_a_row_for_each_barrier(tmp_path_factory: pytest.TempPathFactory, columns: int) -> None:
    launch = pipeline(tmp_path_factory.getbasetemp(), "static_barriers", 2, 40)
    view = view_of(launch)
    lines = [plain(line) for line in view.lines(columns)]
    assert max(map(len, lines)) <= columns
    rows = [line.split() for line in lines if "[2]  " in line and " wait" not in line]
    assert {row[1] for row in rows} == set(BARRIERS["static_barriers"])
    for row in rows:
        wait = waits_by_barrier(launch)[row[1]]
        assert row[2:5] == [wait.role, str(wait.count), str(wait.signal_count)]
    first = view.begins(columns)
    shown = [line.split()[0] for line in lines[first : first + len(view.rows)]]
    assert shown == [row.phase.letter for row in view.rows]
    for number, line in enumerate(lines):
        if "[2]  " in line and " wait" not in line:
            assert view.ptx_line(number, columns) == waits_by_barrier(launch)[line.split()[1]].line
    assert [view.ptx_line(first + len(view.rows) + number, columns) for number in range(3)] == [None] * 3
    (data,) = (own for own in view.record()["waits"] if own["barriers"] == ["full_v[2]"])
    assert (data["arrivals"], data["arrivals_per_phase"], data["stages_in_use"]) == (TILES, 1, 0)


def test_titles_of_both_tables_stay_above_their_rows(tmp_path_factory: pytest.TempPathFactory) -> None:
    view = view_of(pipeline(tmp_path_factory.getbasetemp(), "static_barriers", 2, 40))
    window = LineWindow(view)
    window.lay_out(80, 8)

    def drawn() -> list[str]:
        return [plain(line) for line in window.draw(80, "", None, focused=True)]

    def titles_at(row: int) -> list[str]:
        window.place.top = window.place.cursor = row - window.pinned
        return drawn()[1].split()

    (_, phases), (_, barriers) = view.headings()
    assert titles_at(phases.start + 1)[0] == "phase"
    assert titles_at(phases.stop - 3)[0] == "phase"
    assert titles_at(barriers.start + 1)[0] == "barrier"
    search = DocumentSearch(window, SimpleNamespace(), lambda: None, lambda: None)  # type: ignore[arg-type]
    search.filter_text = "[2] "
    search._take_filter(window.lines, keep=False, matches=matching_lines(window.lines, window.pinned, "[2] "))
    window.place.top = window.place.cursor = 0
    assert drawn()[1].split()[0] == "phase"
    window.place.top = window.place.cursor = window.count - 1
    assert drawn()[1].split()[0] == "barrier", "rows that pass the filter are below the titles of their own table"


@pytest.mark.parametrize(
    ("late_k", "late_v", "full"),
    [(0, 0, {"full_k[2]": 2, "full_v[2]": 2}), (3, 0, {"full_k[2]": 2, "full_v[2]": 0}), (0, 6, {})],
)
def test_stages_are_full_only_where_the_producer_waits_for_one(
    tmp_path_factory: pytest.TempPathFactory, late_k: int, late_v: int, full: dict[str, int]
) -> None:
    """A wait for a stage that is free takes some cycles, too; and K may have no free stage where V has one."""
    launch = pipeline(tmp_path_factory.getbasetemp(), "static_barriers", late_k, late_v, tiles=30)
    waits = waits_by_barrier(launch)
    assert {name: waits[name].stages_full for name in ("full_k[2]", "full_v[2]")} == {
        "full_k[2]": 0, "full_v[2]": 0, **full,
    }  # fmt: skip
    assert (waits["empty_k[2]"].stages_ahead, waits["empty_v[2]"].stages_ahead) == (2, 2)
    text = wait_text(waits["empty_k[2]"])
    assert f"producer has {waits['empty_k[2]'].stages_in_use:.1f} of 2 stages in use" in text


def test_waits_are_matched_by_order_where_warps_keep_their_first_records(tmp_path: Path) -> None:
    """The roles keep other numbers of tiles: each wait that has its signal is matched as with all records."""
    tiles, launches = 100, []
    for cap in (256, 2048):
        probe = replace(PROBE, maps=(PROBE.maps[0], replace(PROBE.maps[1], cap=cap)))
        folder = tmp_path / str(cap)
        folder.mkdir()
        launches.append(run_pipeline(folder, "static_barriers", 2, 20, tiles, probe))
    cut, complete = launches
    assert cut.starts_kept < cut.starts_seen
    assert complete.starts_kept == complete.starts_seen
    some, every = map(waits_by_barrier, launches)
    assert all(wait.by_order for wait in some.values())
    for name, wait in some.items():
        assert wait.stages_ahead == every[name].stages_ahead
        assert (wait.late_cycles + wait.in_flight_cycles) < 0.6 * (
            every[name].late_cycles + every[name].in_flight_cycles
        )
        assert wait.late_share == pytest.approx(every[name].late_share, abs=0.1)
    assert len({wait.count for wait in some.values() if wait.role == "producer"} | {tiles}) > 1
