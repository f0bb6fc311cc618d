"""The benchmark of verdicts: its rule of bounds, its reading of ncu's file, and its program, which the probe fits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.bench.verdicts import SOURCE, KernelVerdict, base, bound, compared, ncu_shares, table
from tests.importers.files import real
from tests.recorded import H200, unpacked

if TYPE_CHECKING:
    from pathlib import Path


def row(bound_: str | None, memory: float, compute: float) -> KernelVerdict:
    return KernelVerdict("k", bound_, bound_, "", {"memory": memory, "compute": compute})


@pytest.mark.parametrize(
    ("memory", "compute", "which"),
    [(92.0, 10.0, "memory"), (30.0, 61.0, "compute"), (59.9, 12.0, "neither"), (90.0, 91.0, "compute")],
)
def test_the_bound_of_ncu_is_the_larger_share_from_60_per_cent(memory: float, compute: float, which: str) -> None:
    assert row(which, memory, compute).ncu == which
    assert row(which, memory, compute).agrees


def test_unknown_verdict_agrees_with_nothing() -> None:
    assert not row(None, 10.0, 10.0).agrees
    assert not KernelVerdict("k", "latency", "neither", "", {}).agrees


def test_ties_are_marked() -> None:
    assert row("memory", 90.0, 91.0).tied
    assert not row("memory", 90.0, 20.0).tied
    assert not row("neither", 20.0, 21.0).tied
    lines = table([row("memory", 90.0, 91.0), row("memory", 90.0, 20.0)])
    assert "**no** (tied)" in lines[2]
    assert lines[-1] == "1 of 2 agree; 1 tied"


def test_verdicts_are_memory_compute_or_neither() -> None:
    limits = ("memory", "tensor", "fp32", "fp64", "fp16", "issue", "latency", "too small", "launch", None)
    bounds = [bound(limit) for limit in limits]
    assert bounds == ["memory", *["compute"] * 5, *["neither"] * 3, None]


def test_shares_of_a_real_file(tmp_path: Path) -> None:
    assert ncu_shares(real(tmp_path, "ncu/vec_full.csv"))["coalesced"] == pytest.approx(
        {"memory": 13.88, "compute": 0.57, "DRAM": 0.04, "L2": 15.82, "L1": 7.10}
    )


def test_a_recorded_trace_has_a_row_per_kernel(tmp_path: Path) -> None:
    path = real(tmp_path, "ncu/vec_full.csv")
    rows = {change.name: change for change in compared(unpacked(H200 / "demo_bytes", tmp_path), path)}
    assert (rows["zero_fill"].limit, rows["zero_fill"].ncu) == ("launch", None)
    assert len(rows) == 7


def test_names_are_those_without_parameters() -> None:
    assert base("copy(const float4 *, float4 *, unsigned long)") == "copy"
    assert base("void fused<double>(double *)") == "fused"


def test_the_program_has_kernels_of_the_kinds_that_are_asked_for() -> None:
    text = SOURCE.read_text()
    defined = set(re.findall(r"__global__ void (\w+)\(", text))
    assert defined == set(re.findall(r"^ +(\w+)<<<", text, re.MULTILINE))
    assert len(defined) >= 12
