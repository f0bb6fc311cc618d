"""Probes whose values are the same in all lanes of a warp."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_probe.engine.snippet import saves_uniform_values
from tui_probe.probe_files.loading import load_probe


@pytest.mark.parametrize(("name", "expected"), [("block_sched", True), ("dmat", False), ("gmem_sectors", False)])
def test_clocks_and_numbers_of_blocks_are_those_of_the_warp(name: str, expected: bool) -> None:
    assert saves_uniform_values(load_probe(name)) is expected


@pytest.mark.parametrize("value", ["mov.u32 %elapsed, %laneid;", "mov.u32 %elapsed, %tid.x;"])
def test_lane_dependent_values_are_not_uniform(value: str, tmp_path: Path) -> None:
    source = load_probe("block_sched").path.read_text()
    path = tmp_path / "own.toml"
    path.write_text(source.replace("sub.u32 %elapsed, %elapsed, %begin;", value).replace("block_sched", "own"))
    assert not saves_uniform_values(load_probe(str(path)))
