"""Reduced results, without ``--detail``, have the same numbers as all records."""

from __future__ import annotations

from dataclasses import fields
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.probes.running import result_of
from tests.probes.test_by_line import LAUNCHES
from tests.turns import due_pairs
from tui_probe.errors import TraceError
from tui_probe.probe_files.loading import load_probe
from tui_probe.probe_model.storage import FOLDED_SLOTS
from tui_probe.probekit import custom_probe
from tui_probe.probekit.custom_probe import _custom_map
from tui_probe.probekit.registry import probe_named
from tui_probe.probes.barrier_wait import waits
from tui_probe.probes.block_sched.analysis import analyse, timeline_of

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.results import Result

COUNTED = ("gmem_bytes", "gmem_sectors", "inst_mix", "tensorop_count", "divergence", "smem_conflicts", "barrier_wait")
KEPT = {"gmem_bytes": 64, "gmem_sectors": 128, "inst_mix": 104, "tensorop_count": 40, "divergence": 40,
        "smem_conflicts": 32, "barrier_wait": 32}  # fmt: skip


def both(folder: Path, probe: str, launch: str, **more: Any) -> tuple[Result, Result]:
    """All records of a launch, and what is kept of them."""
    text, arguments, how = LAUNCHES[launch]
    results = []
    for name, detail in (("all", True), ("kept", False)):
        (folder / name).mkdir()
        results.append(result_of(folder / name, probe, text, *arguments, **how, **more, detail=detail))
    return results[0], results[1]


def told(probe: str, result: Result) -> Any:
    known = probe_named(probe)
    assert known is not None
    kernel = SimpleNamespace(read_info=lambda: None, folder=None, trace=None)
    return known.analyse(SimpleNamespace(result=result, probe=probe, kernel=kernel, launch=None))  # type: ignore[arg-type]


@pytest.mark.parametrize(("probe", "launch"), due_pairs(COUNTED, ["strided", "matmul", "fragments", "uneven"]))
def test_sums_of_a_launch(tmp_path: Path, launch: str, probe: str) -> None:
    whole, reduced = both(tmp_path, probe, launch)
    assert (whole.group(0), reduced.group(0)) == (None, "launch")
    assert reduced.map_records[0].record_bytes == KEPT[probe]
    assert told(probe, reduced) == told(probe, whole)


@pytest.mark.parametrize("probe", COUNTED)
def test_sums_of_a_sample_of_blocks(tmp_path: Path, probe: str) -> None:
    whole, reduced = both(tmp_path, probe, "strided", sample=range(1, 32, 3))
    assert reduced.group(0) == "launch"
    assert told(probe, reduced) == told(probe, whole)


def test_launch_of_one_block_is_saved_in_full(tmp_path: Path) -> None:
    """Its reduced records would take no less room."""
    whole, reduced = both(tmp_path, "block_sched", "columns")
    assert reduced.group(0) is None
    assert reduced.path.read_bytes() == whole.path.read_bytes()


def test_warps_of_many_blocks_share_slots_without_losing_counts(tmp_path: Path) -> None:
    """Twice as many warps as slots, so that each slot is added to more than once."""
    text, _, how = LAUNCHES["strided"]
    blocks = 2 * FOLDED_SLOTS // 8
    arguments = (np.zeros(2 * blocks * 256, np.uint32), np.uint32(blocks * 256))
    (tmp_path / "folded").mkdir()
    result = result_of(tmp_path / "folded", "gmem_sectors", text, *arguments, **how | {"grid": (blocks,)}, detail=False)
    counts = told("gmem_sectors", result)
    warps = blocks * 8
    assert (counts.store_requests, counts.store_sectors, counts.store_ideal) == (warps, 8 * warps, 4 * warps)
    assert counts.threads_missing == 0


@pytest.mark.parametrize("launch", ["strided", "matmul", "uneven", "saxpy"])
def test_schedules_of_blocks(tmp_path: Path, launch: str) -> None:
    whole, reduced = both(tmp_path, "block_sched", launch)
    assert (whole.group(0), reduced.group(0)) == (None, "block")
    for field in fields(schedule := analyse(reduced)):
        np.testing.assert_array_equal(getattr(schedule, field.name), getattr(analyse(whole), field.name))
    lines, all_lines = timeline_of(reduced, has_shared_clock=True), timeline_of(whole, has_shared_clock=True)
    for name in ("start", "end", "sm", "slot", "block"):
        np.testing.assert_array_equal(getattr(lines.blocks, name), getattr(all_lines.blocks, name))
    assert (lines.tail(), lines.span, lines.warps_missing) == (all_lines.tail(), all_lines.span, 0)
    assert (lines.has_warps, all_lines.has_warps) == (False, True)
    with pytest.raises(TraceError, match="run with --detail to see warps"):
        _ = lines.warps


def test_barriers_of_each_warp_are_not_known_of_sums(tmp_path: Path) -> None:
    whole, reduced = both(tmp_path, "barrier_wait", "uneven")
    of = (SimpleNamespace(result=result, probe="barrier_wait", launch_label="launch 0") for result in (whole, reduced))
    known, unknown = (waits(result, lambda _: None) for result in of)  # type: ignore[arg-type]
    assert [len(values) for values in known.values.values()] == [8, 8]
    assert (unknown.values, unknown.unknown) == ({}, tuple(known.values))
    assert known.caption == "8 warps, 16 barriers"
    assert unknown.caption == "16 barriers; for each warp's waits, run with --detail"


def test_figures_without_an_analysis(tmp_path: Path) -> None:
    """As of a probe that is not known: sums are the same, ranges those of what was kept."""
    for probe in ("gmem_bytes", "barrier_wait"):
        (folder := tmp_path / probe).mkdir()
        own = load_probe(probe)
        maps = [_custom_map(own, map_) for map_ in own.maps]
        whole, reduced = (
            {
                metric_value.key: metric_value.value
                for metric_value in custom_probe.analyse_custom(result, maps).metric_values()
            }
            for result in both(folder, probe, "matmul")
        )
        assert {key: reduced[key] for key in whole} == whole
    assert reduced["barrier_wait.longest.least"] == reduced["barrier_wait.longest.most"] > 0
