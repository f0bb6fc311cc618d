"""Comparison of phases with Proton: what is read from the programs and from Proton's trace, without a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.phases_proton import proton_cycles, region_lines

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize(
    ("program", "bodies"),
    [
        ("gluon_regions", {"issue": "mbarrier.expect", "arrive": "mbarrier.wait", "multiply": "sums = warpgroup_mma("}),
        ("triton_regions", {"fetch": "values = tl.load", "weigh": "weights = tl.exp(values", "keep": "tl.store"}),
    ],
)
def test_regions_are_the_lines_between_their_marks(program: str, bodies: dict[str, str]) -> None:
    source = (PROGRAMS / f"{program}.py").read_text()
    regions, lines = region_lines(source), source.splitlines()
    for name, beginning in bodies.items():
        first, last = regions[name]
        assert lines[first - 1].lstrip().startswith(beginning)
        assert not any("scope(" in line for line in lines[first - 1 : last])
        assert "scope(" in "".join(lines[last : last + 3]) or lines[last].strip() in ("parity ^= 1", "stage ^= 1")


def test_regions_of_a_warp_are_summed_over_its_iterations(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "name": "issue", "pid": "CTA0", "tid": f"warp {warp}", "dur": duration}
        for warp, duration in ((0, 0.1), (0, 0.3), (1, 0.2), (1, 0.2)) * 3
    ]
    path = tmp_path / "proton.chrome_trace"
    path.write_text(json.dumps({"traceEvents": [*events, {"ph": "M", "name": "other"}]}))
    assert proton_cycles(path, launches=3) == {"issue": pytest.approx(400)}
