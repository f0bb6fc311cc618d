"""Comparison of phases with other tools: what is read from the programs and from the tools' traces, without a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.region_lengths import iket_cycles, iket_launches, iket_times, proton_cycles, region_lines

PROGRAMS = Path(__file__).parent / "programs"
MARKS = ("scope(", "range_push(", "range_pop(")


@pytest.mark.parametrize(
    ("program", "bodies"),
    [
        ("gluon_regions", {"issue": "mbarrier.expect", "arrive": "mbarrier.wait", "multiply": "sums = warpgroup_mma("}),
        ("triton_regions", {"fetch": "values = tl.load", "weigh": "weights = tl.exp(values", "keep": "tl.store"}),
        ("cute_regions", {"multiply": "for _step in cutlass.range_constexpr(256)", "root": "for _step in"}),
    ],
)
def test_regions_are_the_lines_between_their_marks(program: str, bodies: dict[str, str]) -> None:
    source = (PROGRAMS / f"{program}.py").read_text()
    regions, lines = region_lines(source), source.splitlines()
    for name, beginning in bodies.items():
        first, last = regions[name]
        assert lines[first - 1].lstrip().startswith(beginning)
        assert not any(mark in line for mark in MARKS for line in lines[first - 1 : last])
        after = "".join(lines[last : last + 3])
        assert any(mark in after for mark in MARKS) or lines[last].strip() in ("parity ^= 1", "stage ^= 1")


def test_regions_of_a_warp_are_summed_over_its_iterations(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "name": "issue", "pid": "CTA0", "tid": f"warp {warp}", "dur": duration}
        for warp, duration in ((0, 0.1), (0, 0.3), (1, 0.2), (1, 0.2)) * 3
    ]
    path = tmp_path / "proton.chrome_trace"
    path.write_text(json.dumps({"traceEvents": [*events, {"ph": "M", "name": "other"}]}))
    assert proton_cycles(path, launches=3) == {"issue": pytest.approx(400)}


def test_regions_of_iket_are_summed_over_the_launches_of_the_kernel(tmp_path: Path) -> None:
    sizes = {f"{of}Dim{axis}": 1 for of in ("grid", "block") for axis in "YZ"}
    regions = [{"rangeNameIdx": 1, "startTs": 64, "endTs": 64 + 32 * number} for number in range(1, 5)]
    launch = {"kernelName": "region_rounds", "gridDimX": 2, "blockDimX": 64, **sizes, "ranges": regions}
    path = tmp_path / "iket.trace.json"
    other = {**launch, "kernelName": "fill"}
    path.write_text(json.dumps({"launches": [launch, other, launch], "stringTable": ["turn", "root"]}))
    launches, names = iket_launches(path)
    assert iket_cycles(launches, names, megahertz=2000) == {"root": pytest.approx(2 * 320 / 4)}
    assert iket_times(launches) == [0.128, 0.128]
